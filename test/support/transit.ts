/** Client – router – Internet, where the router forwards: what passes the proxy by arrives with the client's address. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ORIGIN, openRow, ROUTER, type Row } from "./netns-row.ts";
import type { Netns } from "./netns.ts";
import type { StandIn } from "./tun-stand-in.ts";

const here = dirname(fileURLToPath(import.meta.url));

export const CLIENT = ["203.0.113.2", "fd00:1::2"] as const;
/** The router's address towards the Internet: what it sends itself, the proxy among it. */
export const UPLINK = ["198.51.100.1", "fd00:2::1"] as const;
/** The same host as the origin, at addresses outside every network of the hosts: what is captured. */
export const FAR = ["192.0.2.2", "fd00:9::2"] as const;
export { ORIGIN, ROUTER };

export interface Transit extends Row {
  readonly arrivals: Arrivals;
}

export interface Arrivals {
  /** `tcp 203.0.113.2 80`, each once, sorted: from which address packets of which protocol arrived, and for which port. */
  list(): Promise<readonly string[]>;
  forget(): Promise<void>;
}

const ARRIVALS = `
table inet arrivals {
  set four { type inet_proto . ipv4_addr . inet_service; flags dynamic; size 4096; }
  set six { type inet_proto . ipv6_addr . inet_service; flags dynamic; size 4096; }
  chain in {
    type filter hook input priority 0;
    meta nfproto ipv4 meta l4proto { tcp, udp } update @four { meta l4proto . ip saddr . th dport }
    meta nfproto ipv6 meta l4proto { tcp, udp } update @six { meta l4proto . ip6 saddr . th dport }
    icmp type echo-request update @four { meta l4proto . ip saddr . 0 }
    icmpv6 type echo-request update @six { meta l4proto . ip6 saddr . 0 }
  }
}
`;

export async function openTransit(label: string): Promise<Transit> {
  await using undo = new AsyncDisposableStack();
  const row = undo.use(await openRow(label));
  const { router, origin } = row;
  const forward = ["ipv4/ip_forward", "ipv6/conf/all/forwarding"].map(
    (key) => `echo 1 >/proc/sys/net/${key}`,
  );
  await router.run("sh", "-c", forward.join("; "));
  await router.ip(`route add default via ${ORIGIN[0]}`, `-6 route add default via ${ORIGIN[1]}`);
  await origin.ip(`address add ${FAR[0]}/32 dev lo`, `address add ${FAR[1]}/128 dev lo nodad`);
  await origin.ip(
    `route add default via ${UPLINK[0]} src ${FAR[0]}`,
    `-6 route add default via ${UPLINK[1]} src ${FAR[1]}`,
    // Also to the router: answers come from where the questions of this test went.
    `route replace 198.51.100.0/24 dev down0 scope link src ${FAR[0]}`,
    `-6 route add fd00:2::/64 dev down0 src ${FAR[1]} metric 1`,
  );
  await origin.nft(ARRIVALS);
  const owned = undo.move();
  const close = () => owned.disposeAsync();
  return { ...row, arrivals: arrivalsIn(origin), [Symbol.asyncDispose]: close };
}

function arrivalsIn(origin: Netns): Arrivals {
  const listSet = async (name: string): Promise<readonly string[]> => {
    const { nftables } = JSON.parse(
      await origin.run("nft", "-j", "list", "set", "inet", "arrivals", name),
    ) as {
      nftables: { set?: { elem?: { concat: readonly (string | number)[] }[] } }[];
    };
    return nftables.flatMap(({ set }) => (set?.elem ?? []).map(({ concat }) => concat.join(" ")));
  };
  return {
    list: async () =>
      [...(await listSet("four")), ...(await listSet("six"))].toSorted((a, b) => a.localeCompare(b)),
    forget: () => origin.nft("flush set inet arrivals four\nflush set inet arrivals six\n"),
  };
}

export interface RunningStandIn extends AsyncDisposable {
  readonly child: ChildProcess;
  /** Every line so far. */
  readonly lines: readonly string[];
  /** The first line that matches, also one that came already; fails where the program ends first. */
  line(pattern: RegExp): Promise<string>;
  /** Gives a command and waits until it is done. */
  tell(command: string): Promise<void>;
  kill(): Promise<void>;
}

/** tun-stand-in.ts in a namespace, from the moment its capture is in force. */
export async function startStandIn(
  netns: Netns,
  wanted: StandIn,
  env: NodeJS.ProcessEnv = {},
): Promise<RunningStandIn> {
  const script = join(here, "tun-stand-in.ts");
  const [program, ...args] = [
    ...netns.prefix,
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    script,
    JSON.stringify(wanted),
  ];
  const child = spawn(program as string, args, {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  const ended = once(child, "exit");
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  const output = createInterface(child.stdout);
  const notify = (): void => [...listeners].forEach((listener) => listener());
  let open = true;
  output.on("line", (text) => (lines.push(text), notify()));
  output.on("close", () => ((open = false), notify()));
  child.stdin.on("error", () => {}); // it has ended: the wait for its next line fails
  const line = (pattern: RegExp, from = 0): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = lines.slice(from).find((text) => pattern.test(text));
        if (found === undefined && open) return;
        listeners.delete(look);
        if (found !== undefined) resolve(found);
        else reject(new Error(`the stand-in has ended without ${pattern}: ${lines.join(" | ")}`));
      };
      listeners.add(look);
      look();
    });
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ended;
  };
  const running: RunningStandIn = {
    child,
    lines,
    line: (pattern) => line(pattern),
    async tell(command) {
      const from = lines.length;
      child.stdin.write(`${command}\n`);
      await line(/^done /, from);
    },
    kill,
    [Symbol.asyncDispose]: kill,
  };
  try {
    await line(/^ready /);
  } catch (error) {
    await kill();
    throw error;
  }
  return running;
}

export interface Talker extends AsyncDisposable {
  say(line: string): void;
  nextLine(): Promise<string>;
}

/** A program in a namespace that is told lines and tells lines. */
export function talkTo(netns: Netns, command: readonly string[]): Talker {
  const [program, ...args] = [...netns.prefix, ...command];
  const child = spawn(program as string, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  child.stdin.on("error", () => {}); // it has ended: the wait for its next line fails
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    say: (line) => void child.stdin.write(`${line}\n`),
    async nextLine() {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`${command.join(" ")} has ended`);
      return value as string;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await ended;
    },
  };
}
