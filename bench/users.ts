/**
 * Ten thousand managed users: what a change, a list and a subscription cost, and how late the program's event loop is
 * meanwhile, beside what the disk takes for one fsync.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { Agent, request } from "node:http";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSecondsOf } from "../test/support/cpu-seconds.ts";
import { ADMIN_SECRET, ManagedCore, stateFolder } from "../test/support/managed-core.ts";
import { makeState, type MadeUser } from "../test/support/many-users.ts";
import { quantile } from "../test/support/slow-clients.ts";

export const NAME = "users";

const USERS = 10_000;
const CHANGES = 1_000;
const LISTS = 20;

export async function run(out: (line: string) => void): Promise<void> {
  using state = stateFolder();
  const made = makeState(state.store, { edge: "vless", side: "anytls" }, USERS / 2);
  const startedMs = performance.now();
  using loop = new LoopProbe(join(state.path, "loop"));
  await using core = await ManagedCore.start({ store: state.store, folder: state.path });
  out(`start with ${USERS} users: ${Math.round(performance.now() - startedMs)} ms`);
  const client = new Client(core.url, core.core.pid);
  const told = async (text: string) =>
    out(`${text}; event loop late by ${await loop.read(core.core.pid)}; load ${loadavg()[0]?.toFixed(1)}`);
  await loop.read(core.core.pid);
  for (const tag of ["edge", "side"]) await told(await changes(client, core, made, tag, state.path));
  await told(await lists(client));
  await told(await subscriptions(client, core, made));
  client.agent.destroy();
}

type Change = readonly [method: string, path: string, fields: object];

/** One of each kind in turn, each on a user of its own; the next names the revision that the one before answered with. */
function nth(at: number, tag: string, user: MadeUser, prefix = "renamed"): Change {
  const path = `/api/admin/users/${user.id}`;
  const kinds: readonly Change[] = [
    ["PUT", path, { name: `${prefix} ${user.name}` }],
    ["PUT", path, { enabled: false }],
    ["PUT", path, { enabled: true }],
    ["PUT", path, tag === "edge" ? { uuid: crypto.randomUUID() } : { password: crypto.randomUUID() }],
    ["POST", `${path}/reset-traffic`, {}],
    ["POST", `${path}/rotate-subscription`, {}],
    ["POST", "/api/admin/users", { inbound: tag, name: `new ${at}` }],
    ["DELETE", path, {}],
  ];
  return kinds[at % kinds.length] as Change;
}

async function changes(
  client: Client,
  core: ManagedCore,
  made: readonly MadeUser[],
  tag: string,
  folder: string,
): Promise<string> {
  const users = made.filter(({ listener }) => listener === tag);
  const disk = new Disk(join(folder, "bare"));
  const took: number[] = [];
  const idle: number[] = [];
  let cpuMs = 0;
  let revision = await core.revision(tag);
  for (let at = 0; at < CHANGES; at++) {
    disk.sync();
    idle.push(await client.timed(() => client.ask("GET", "/api/admin/protocols")));
    const before = client.cpuMs();
    const change = nth(at, tag, users[at] as MadeUser);
    took.push(await client.timed(() => client.change(change, revision)));
    cpuMs += client.cpuMs() - before;
    revision = client.revision ?? (await core.revision(tag)); // no answer to a deletion has one
  }
  disk.close();
  const cpu = (cpuMs / CHANGES).toFixed(1);
  return `${tag}: a change ${shown(took)}, ${cpu} ms of CPU; beside it a bare fsync ${shown(disk.took)}, a request that does nothing ${shown(idle)}`;
}

async function lists(client: Client): Promise<string> {
  const took: number[] = [];
  let sizeBytes = 0;
  for (let at = 0; at < LISTS; at++) {
    took.push(
      await client.timed(async () => {
        sizeBytes = (await client.ask("GET", "/api/admin/users")).length;
      }),
    );
  }
  return `list of ${USERS} users, ${(sizeBytes / 1e6).toFixed(1)} MB: ${shown(took)}`;
}

async function subscriptions(client: Client, core: ManagedCore, made: readonly MadeUser[]): Promise<string> {
  let changing = true;
  let changed = 0;
  const changer = async () => {
    const users = made.filter(({ listener }) => listener === "edge").slice(CHANGES);
    let revision = await core.revision("edge");
    for (; changing; changed++) {
      const user = users[changed % users.length] as MadeUser;
      await client.change(nth(changed % 6, "edge", user, `again ${changed}`), revision);
      revision = client.revision as number;
    }
  };
  const running = changer();
  const took: number[] = [];
  const { token } = made[USERS - 1] as MadeUser;
  for (let at = 0; at < 2 * CHANGES; at++) {
    took.push(await client.timed(() => client.ask("GET", `/sub/svc/${token}`)));
  }
  changing = false;
  await running;
  return `a subscription while ${changed} changes run: ${shown(took)}`;
}

function shown(took: readonly number[]): string {
  const sorted = took.toSorted((a, b) => a - b);
  const [p50, p99] = [0.5, 0.99].map((share) => quantile(sorted, share).toFixed(1));
  return `p50 ${p50}, p99 ${p99}, worst ${Math.max(...took).toFixed(1)} ms`;
}

/** A page at a time at the end of a file, as a log grows. */
class Disk {
  readonly took: number[] = [];
  readonly #page = Buffer.alloc(4096, 1);
  readonly #file: number;
  constructor(path: string) {
    this.#file = openSync(path, "w");
  }
  sync(): void {
    writeSync(this.#file, this.#page);
    const startMs = performance.now();
    fsyncSync(this.#file);
    this.took.push(performance.now() - startMs);
  }
  close(): void {
    closeSync(this.#file);
  }
}

/** How late the event loop of the next program that is started is. */
class LoopProbe implements Disposable {
  readonly #file: string;
  constructor(file: string) {
    this.#file = file;
    process.env["WEIR_PROBE_FILE"] = file;
    process.env["NODE_OPTIONS"] = `--import ${new URL("loop-probe.mjs", import.meta.url).href}`;
  }

  /** Since the last time. */
  async read(pid: number): Promise<string> {
    rmSync(this.#file, { force: true });
    process.kill(pid, "SIGWINCH");
    while (!existsSync(this.#file)) await sleep(5);
    const { p50, p99, worst } = JSON.parse(readFileSync(this.#file, "utf8")) as Record<string, number>;
    return `p50 ${p50?.toFixed(1)}, p99 ${p99?.toFixed(1)}, worst ${worst?.toFixed(1)} ms`;
  }

  [Symbol.dispose](): void {
    delete process.env["WEIR_PROBE_FILE"];
    delete process.env["NODE_OPTIONS"];
  }
}

class Client {
  readonly agent = new Agent({ keepAlive: true });
  readonly #url: string;
  readonly #pid: number;
  /** That the last change was answered with. */
  revision: number | null = null;

  constructor(url: string, pid: number) {
    this.#url = url;
    this.#pid = pid;
  }

  async timed(work: () => Promise<unknown>): Promise<number> {
    const startMs = performance.now();
    await work();
    return performance.now() - startMs;
  }

  /** Of the program, so far. */
  cpuMs(): number {
    return cpuSecondsOf(this.#pid) * 1_000;
  }

  async change([method, path, fields]: Change, revision: number): Promise<void> {
    if (method === "DELETE") {
      await this.ask(method, `${path}?revision=${revision}`);
      this.revision = null;
    } else {
      const said = JSON.parse(await this.ask(method, path, { ...fields, revision }));
      this.revision = (said as { revision: number }).revision;
    }
  }

  ask(method: string, path: string, body?: object): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const text = body === undefined ? "" : JSON.stringify(body);
    const headers = { authorization: `Bearer ${ADMIN_SECRET}`, "content-length": Buffer.byteLength(text) };
    request(this.#url + path, { method, agent: this.agent, headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => void pieces.push(piece));
      response.on("end", () => {
        const said = Buffer.concat(pieces).toString();
        if ((response.statusCode ?? 500) < 300) resolve(said);
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${said}`));
      });
    })
      .on("error", reject)
      .end(text);
    return promise;
  }
}
