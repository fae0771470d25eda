/**
 * The program with four workers under load: a change holds for the very next connection, whether it asks for what was asked
 * for just before or for something new, and whether workers have the new version already or not yet.
 */
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SEAMS } from "#dataplane/workers/shared/seams.ts";
import { ANY_V4 } from "#net/address/ip.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { randomFrom } from "../support/random.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore, type Core } from "../support/start-core.ts";

export const changingConfig = (more = ""): string => `
external-controller: 127.0.0.1:0
workers: 4
hosts: { "+.pinned.test": 127.200.0.8 }
listeners:
  - { name: in, type: mixed, listen: 127.0.0.1, port: 0 }
proxy-groups:
  - { name: choice, type: select, proxies: [DIRECT, REJECT] }
rules:
  - DOMAIN,unknown.test,REJECT
${more}  - MATCH,choice
`;

const REFUSED = "  - IP-CIDR,127.0.0.0/8,REJECT\n";

export async function call<T>(core: Core, method: string, path: string, body?: unknown): Promise<T | null> {
  const url = `http://127.0.0.1:${await core.controllerPort()}${path}`;
  const answer = await fetch(url, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`);
  return method === "GET" ? ((await answer.json()) as T) : null;
}

let last = 0;
/** In turn one that is asked for again and again, and another one each time. */
export const anyAddress = (): string =>
  ++last % 2 === 0 ? "127.200.0.9" : `127.${(last >> 8) & 127}.${last & 255}.9`;

/** The same, and every third time a name. */
const anyDestination = (): string => {
  const address = anyAddress();
  return last % 3 === 0 ? "same.pinned.test" : address;
};

export async function isServed(port: number, originPort: number): Promise<boolean> {
  const { client, status } = await socksConnect(port, anyDestination(), originPort).catch(() => ({
    client: null,
    status: 1,
  }));
  if (client === null) return false;
  using _client = client;
  if (status !== 0) return false;
  client.send(Buffer.from("ping"));
  return (await client.read(4).catch(() => Buffer.of())).length === 4;
}

export interface ChangesPlan {
  /** Each of four changes and back; in every fourth round two reloads and a rule that is switched off besides. */
  readonly rounds: number;
  /** Each seam between the threads lasts so long in its turn; 0: none does. */
  readonly seamMs: number;
}

export interface ChangesFindings {
  changes: number;
  /** Connections behind a change. */
  checked: number;
  readonly faults: string[];
}

export async function proveChanges({ rounds, seamMs }: ChangesPlan): Promise<ChangesFindings> {
  await using origin = await openTcpOrigin(echo, ANY_V4);
  const program = fileURLToPath(new URL("../support/seamed-core.ts", import.meta.url));
  const prefix = [process.execPath, "--disable-warning=ExperimentalWarning"];
  await using core = await startCore(changingConfig(), {
    timeoutMs: 600_000,
    program,
    prefix,
    env: { SEAM_MS: String(seamMs) },
  });
  const port = await core.port("in");
  const found: ChangesFindings = { changes: 0, checked: 0, faults: [] };
  const below = randomFrom(20_261_125);
  const load = keepAsking(port, origin.port);
  const check = async (wanted: boolean, what: string): Promise<void> => {
    found.changes++;
    for (let count = 0; count < 4; count++) {
      if (count === 2) await delay(below(12)); // workers have the new version by then, or are about to
      found.checked++;
      if ((await isServed(port, origin.port)) !== wanted) found.faults.push(`${found.changes}: ${what}`);
    }
  };
  for (let round = 0; round < rounds && found.faults.length === 0; round++) {
    if (seamMs > 0 && round % Math.ceil(rounds / SEAMS.length) === 0) process.kill(core.pid, "SIGWINCH");
    await turn(core, check, round % 4 === 0);
  }
  await load.stop();
  found.faults.push(...faultsOf(core));
  return found;
}

async function turn(
  core: Core,
  check: (wanted: boolean, what: string) => Promise<void>,
  reloads: boolean,
): Promise<void> {
  await check(true, "at first");
  await call(core, "PUT", "/proxies/choice", { name: "REJECT" });
  await check(false, "the choice is REJECT");
  await call(core, "PATCH", "/configs", { mode: "direct" });
  await check(true, "the mode is direct");
  await call(core, "PATCH", "/configs", { mode: "rule" });
  await check(false, "the mode is rule again");
  await call(core, "PUT", "/proxies/choice", { name: "DIRECT" });
  await check(true, "the choice is DIRECT");
  if (!reloads) return;
  await core.reload(changingConfig(REFUSED));
  await check(false, "a rule of the new file");
  await call(core, "PATCH", "/rules/disable", { 1: true });
  await check(true, "the rule is switched off");
  await core.reload(changingConfig());
}

const faultsOf = (core: Core): readonly string[] =>
  core
    .output()
    .split("\n")
    .filter((line) => /a fault of weir|a thread has ended/.test(line))
    .slice(0, 5);

/** Eight clients at a time that are served or refused while something else changes; ends with `stop`. */
function keepAsking(port: number, originPort: number): { stop(): Promise<void> } {
  let isOver = false;
  const run = async (): Promise<void> => {
    while (!isOver) await isServed(port, originPort).catch(() => false);
  };
  const all = Array.from({ length: 8 }, run);
  return {
    async stop() {
      isOver = true;
      await Promise.all(all);
    },
  };
}

export function shownChanges({ changes, checked, faults }: ChangesFindings): string {
  return `${checked} connections behind ${changes} changes, ${faults.length} faults`;
}
