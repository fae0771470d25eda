/** The proof of upgrades on a router: beside its own load, a client of the LAN whose traffic a TUN with auto-redirect captures. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { openRoutedRow, PASSED_BY, passedBy } from "../support/netns-far-away.ts";
import { FAMILIES } from "../support/netns-row.ts";
import type { OfLan } from "../support/upgrade-world.ts";

/** TCP by redirection, UDP by the device. */
export const CAPTURES = `
tun: { enable: true, device: weir-tun0, stack: system, auto-route: true, auto-redirect: true, strict-route: true, auto-detect-interface: false }
`;

interface Steady extends Omit<OfLan, "connections"> {
  readonly tcp: number;
  readonly udp: number;
  readonly faults: readonly string[];
}

/** Sent to the proof in the router's namespace, which asks for it by any message. */
export interface LanReport extends OfLan {
  readonly faults: readonly string[];
}

/** Sockets of the client that send datagrams at once: an upgrade makes a flow of each into two. */
export const LAN_DATAGRAM_LANES = 4 * FAMILIES.length;

/** Runs `script` in a router's namespace, and answers with its exit code. */
export async function runOnRouter(script: string, words: readonly string[]): Promise<number> {
  await using row = await openRoutedRow("prup");
  await row.router.ip("link set lo up");
  await row.router.nft(PASSED_BY);
  const [program = "", ...args] = [...row.router.prefix, process.execPath, ...process.execArgv];
  const child = spawn(program, [...args, script, ...words], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  const first = await Promise.race([once(child, "message"), ended.then(() => null)]);
  if (first !== null) {
    const loads = FAMILIES.map(({ origin }) => row.talk("steady", origin, 7));
    for (const load of loads) await load.nextLine();
    if ((await Promise.race([once(child, "message"), ended.then(() => null)])) !== null) {
      const parts: Steady[] = [];
      for (const load of loads) {
        load.close();
        parts.push(JSON.parse(await load.nextLine()));
      }
      child.send(reportOf(parts, await passedBy(row)));
    }
  }
  const [code] = await ended;
  return Number(code ?? 1);
}

function reportOf(parts: readonly Steady[], past: number): LanReport {
  const sum = (of: (part: Steady) => number): number => parts.reduce((total, part) => total + of(part), 0);
  return {
    upload: sum(({ upload }) => upload),
    download: sum(({ download }) => download),
    connections: sum(({ tcp, udp }) => tcp + udp),
    mostDivided: 0,
    faults: [
      ...parts.flatMap(({ faults }) => faults.map((fault) => `a client of the LAN: ${fault}`)),
      ...(past === 0 ? [] : [`${past} packets passed weir by`]),
    ],
  };
}

/** In the router's namespace: weir captures now. */
export function beginLan(): void {
  process.send?.("begin");
}

/** Ends the client of the LAN. */
export async function endLan(): Promise<LanReport> {
  process.send?.("end");
  const [report] = await once(process, "message");
  process.disconnect?.();
  return report as LanReport;
}
