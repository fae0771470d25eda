/** A program that is replaced again and again under load, and what its counters must be. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Outbound } from "#core/outbound.ts";
import { askForUpgrade, requestPath, type UpgradeAnswer } from "#upgrade/requests.ts";
import { roundTrip } from "./client.ts";
import { freePorts } from "./free-ports.ts";
import { CONTROLLER_SECRET, ManagedCore, type AnyJson } from "./managed-core.ts";
import { echo, openTcpOrigin, type Origin } from "./origin.ts";
import { HonestClients, repeat, type Repeated } from "./program-load.ts";
import { openSteadyTransfer, SteadyOrigin, type SteadyTransfer } from "./steady-transfers.ts";
import { openRawClient } from "./raw-client.ts";
import { FOREVER, ofVless } from "./user-traffic.ts";
import { until } from "./until.ts";

const EDGE = ofVless("edge", "", {});
const FLOW_BYTES = 700;
/** Of an exchange of `HonestClients`, each way. */
const EXCHANGE_BYTES = 1024;
const DRAIN_MS = 3_600_000;
/** Only there to end a test that fails: a process is started several times. */
const WITHIN_MS = 300_000;

const EXTRA = (mixed: number, portal: number): string => `
mixed-port: ${mixed}
traffic-control:
  enabled: true
  store: policies.db
  portal: { listen: "127.0.0.1:${portal}" }
  global: { enabled: true, id: all }
  devices:
    - { id: here, source-cidrs: [127.0.0.0/8], quota: { total-bytes: 900000000000, window: 1d } }
    - { id: lan, source-cidrs: [203.0.113.0/24, "fd00:1::/64"] }
`;

export interface Load {
  readonly lanes: number;
  readonly pauseMs: number;
  readonly transfers: number;
  readonly userLanes: number;
}

/** What runs beside what tests need of it. */
export interface More {
  /** The program; the checkout's own by default. */
  readonly program?: string;
  /** Further sections of the configuration. */
  readonly sections?: string;
}

interface PolicyCounters {
  readonly upload_bytes: number;
  readonly download_bytes: number;
  readonly connections: number;
}

interface Policy {
  readonly policy: { readonly id: string };
  readonly counters: PolicyCounters;
  readonly rolling: PolicyCounters;
}

export interface Counted {
  readonly upload: number;
  readonly download: number;
}

/** What hosts of the LAN have moved. */
export interface OfLan extends Counted {
  readonly connections: number;
  /** So many more may be counted: an upgrade makes a flow of datagrams into two. */
  readonly mostDivided: number;
}

const NONE: OfLan = { upload: 0, download: 0, connections: 0, mostDivided: 0 };

export class UpgradeWorld implements AsyncDisposable {
  readonly core: ManagedCore;
  /** Of the process that serves. */
  pid: number;
  readonly #mixed: number;
  readonly #origin: Origin;
  readonly #steady: SteadyOrigin;
  readonly #transfers: SteadyTransfer[] = [];
  readonly #clients: HonestClients;
  readonly #users: AnyJson[] = [];
  readonly #lanes: { readonly repeated: Repeated; readonly outbound: Outbound; flows: number }[] = [];
  readonly #moved = { upload: 0, download: 0 };
  readonly #broken: string[] = [];
  readonly #finishing: Promise<void>[] = [];
  #begun = 0;

  private constructor(core: ManagedCore, mixed: number, origin: Origin, steady: SteadyOrigin, load: Load) {
    this.core = core;
    this.pid = core.core.pid;
    this.#mixed = mixed;
    this.#origin = origin;
    this.#steady = steady;
    const doors = Array.from({ length: load.lanes }, () => ({ port: mixed, tls: false }));
    this.#clients = new HonestClients(doors, origin.port, load.pauseMs);
  }

  static async open(load: Load, { program, sections = "" }: More = {}): Promise<UpgradeWorld> {
    const [mixed, edge, controller, portal] = (await freePorts(4)) as [number, number, number, number];
    const core = await ManagedCore.start({
      listeners: `  - { name: edge, type: vless, listen: 127.0.0.1, port: ${edge}, allow-insecure: true, users: [] }\n`,
      managed: ["edge"],
      controller: `127.0.0.1:${controller}`,
      extra: EXTRA(mixed, portal) + sections,
      start: { timeoutMs: WITHIN_MS, ...(program === undefined ? {} : { program }) },
    });
    const origin = await openTcpOrigin(echo);
    const steady = await SteadyOrigin.open();
    const world = new UpgradeWorld(core, mixed, origin, steady, load);
    for (let at = 0; at < load.transfers; at++) await world.#begin();
    for (let at = 0; at < load.userLanes; at++) await world.#addUser(edge, `user ${at}`, load.pauseMs);
    return world;
  }

  get exchanges(): number {
    return this.#clients.exchanges;
  }

  get flows(): number {
    return this.#lanes.reduce((sum, { flows }) => sum + flows, 0);
  }

  /** All that have begun. */
  get sessions(): number {
    return this.exchanges + this.flows + this.#begun;
  }

  /** Replaces long transfers: those of the first processes would be alone with them. */
  async renewTransfers(count: number): Promise<void> {
    for (const transfer of this.#transfers.splice(0, count)) {
      this.#finishing.push(this.#finish(transfer));
      await this.#begin();
    }
  }

  /** A client that comes now is served, however long that takes; answers with how many were. */
  async exchangeOnce(): Promise<number> {
    const one = new HonestClients([{ port: this.#mixed, tls: false }], this.#origin.port, 0);
    await until("it is served", () => one.exchanges > 0, { withinMs: WITHIN_MS });
    await one.stop();
    if (one.faults.length > 0) throw new Error(one.faults.join("; "));
    return Math.min(1, one.exchanges);
  }

  /** A client that has connected and has said nothing; the function has it be served, and rejects where it is not. */
  async silentClient(): Promise<() => Promise<void>> {
    const client = await openRawClient(this.#mixed);
    const target = `127.0.0.1:${this.#origin.port}`;
    return async () => {
      using speaking = client;
      speaking.send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
      await speaking.until("\r\n\r\n");
      speaking.send("late");
      await speaking.until("late");
    };
  }

  async upgrade(to: string | null, drainMs = DRAIN_MS): Promise<UpgradeAnswer> {
    await until("it can be asked", () => existsSync(requestPath(this.core.core.home)), {
      withinMs: WITHIN_MS,
    });
    const answer = await askForUpgrade(this.core.core.home, { to, drainMs });
    if (answer.done) this.pid = answer.pid;
    return answer;
  }

  /** Processes of this home directory that live, the one that serves among them. */
  processes(): readonly number[] {
    return processesIn(this.core.core.home);
  }

  /** Processes that have the stores' files open: each file by one process at most. */
  storeOwners(): readonly number[] {
    return this.processes().filter((pid) => hasOpen(pid, this.core.core.home));
  }

  /** Looks all the time how many processes have the stores' files open; answers with the most that were seen at once. */
  watchOwners(): { stop(): Promise<number> } {
    let most = 0;
    const looking = repeat("owners", 20, async () => {
      // Processes are looked at one after the other: those count that have them open still when the last one has.
      const owners = this.storeOwners().filter((pid) => hasOpen(pid, this.core.core.home));
      most = Math.max(most, owners.length);
    });
    return {
      async stop() {
        await looking[Symbol.asyncDispose]();
        return most;
      },
    };
  }

  /** What has gone wrong with any client. Ends the load. */
  async finish(): Promise<readonly string[]> {
    const faults: string[] = [];
    await this.#clients.stop();
    for (const { repeated } of this.#lanes) await repeated[Symbol.asyncDispose]();
    faults.push(...this.#clients.faults, ...this.#lanes.flatMap(({ repeated }) => repeated.faults));
    this.#steady.finish();
    await Promise.all([...this.#finishing, ...this.#transfers.splice(0).map((each) => this.#finish(each))]);
    faults.push(...this.#broken);
    return faults;
  }

  async #begin(): Promise<void> {
    this.#transfers.push(await openSteadyTransfer(this.#mixed, this.#steady.port));
    this.#begun++;
  }

  async #finish(transfer: SteadyTransfer): Promise<void> {
    const { received, sent, intact } = await transfer.finish();
    this.#moved.upload += sent;
    this.#moved.download += received;
    if (!intact)
      this.#broken.push(`a transfer: ${transfer.failure?.message ?? "other bytes than were sent"}`);
  }

  /** What clients have moved in all. */
  get moved(): Counted {
    const small = this.exchanges * EXCHANGE_BYTES + this.flows * FLOW_BYTES;
    return { upload: this.#moved.upload + small, download: this.#moved.download + small };
  }

  /** A line for each counter that differs from what was moved; none within a while: they are exact. */
  async differences(lan: OfLan = NONE): Promise<readonly string[]> {
    let found: readonly string[] = [];
    await until("counters are exact", async () => (found = await this.#differences(lan)).length === 0, {
      withinMs: 60_000,
      everyMs: 250,
    }).catch(() => {}); // what differs is the answer
    return found;
  }

  async #differences(lan: OfLan): Promise<readonly string[]> {
    const here = { ...this.moved, connections: this.sessions, mostDivided: 0 };
    const all = {
      ...lan,
      upload: here.upload + lan.upload,
      download: here.download + lan.download,
      connections: here.connections + lan.connections,
    };
    const due: Readonly<Record<string, OfLan>> = { here, lan, all };
    const found: string[] = [];
    const compare = (what: string, { upload, download }: Counted, due: Counted): void => {
      if (upload !== due.upload || download !== due.download)
        found.push(
          `${what}: ${upload} up and ${download} down in place of ${due.upload} and ${due.download}`,
        );
    };
    for (const [at, { id }] of this.#users.entries()) {
      const { upload_bytes: upload, download_bytes: download } = await this.core.user(id);
      const bytes = (this.#lanes[at]?.flows ?? 0) * FLOW_BYTES;
      compare(`user ${at}`, { upload, download }, { upload: bytes, download: bytes });
    }
    const { policies } = await this.#controller<{ policies: readonly Policy[] }>(
      "/api/svc/traffic-control/status",
    );
    for (const { policy, counters, rolling } of policies) {
      const wanted = due[policy.id] ?? NONE;
      compare(`policy ${policy.id}`, counted(counters), wanted);
      const more = counters.connections - wanted.connections;
      if (more < 0 || more > wanted.mostDivided)
        found.push(
          `policy ${policy.id}: ${counters.connections} connections in place of ${wanted.connections}`,
        );
      if (policy.id === "here") compare(`window of ${policy.id}`, counted(rolling), here);
    }
    const totals = await this.#controller<{ uploadTotal: number; downloadTotal: number }>("/connections");
    compare("totals", { upload: totals.uploadTotal, download: totals.downloadTotal }, all);
    return found;
  }

  async #controller<T>(path: string): Promise<T> {
    const { text } = await this.core.ask("GET", path, { secret: CONTROLLER_SECRET });
    return JSON.parse(text) as T;
  }

  async #addUser(port: number, name: string, pauseMs: number): Promise<void> {
    const user = await this.core.create("edge", name);
    this.#users.push(user);
    const outbound = await EDGE.open(port, user);
    const lane = {
      flows: 0,
      outbound,
      repeated: repeat(name, pauseMs, async () => {
        const stream = await outbound.connect(this.#origin.destination, { signal: FOREVER, metadata: null });
        await roundTrip(stream, FLOW_BYTES);
        lane.flows++;
      }),
    };
    this.#lanes.push(lane);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#clients.stop();
    for (const { repeated, outbound } of this.#lanes) {
      await repeated[Symbol.asyncDispose]();
      await outbound[Symbol.asyncDispose]();
    }
    for (const pid of this.processes()) process.kill(pid, "SIGKILL");
    await until("all processes end", () => this.processes().length === 0);
    await this.core[Symbol.asyncDispose]();
    await this.#origin[Symbol.asyncDispose]();
    await this.#steady[Symbol.asyncDispose]();
  }
}

function counted({ upload_bytes: upload, download_bytes: download }: PolicyCounters): Counted {
  return { upload, download };
}

/** Weirs of a home directory that live, by their arguments: `-d HOME`. */
export function processesIn(home: string): readonly number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, "latin1").split("\0");
      return words.includes(home) && words.some((word) => word.endsWith("boot.mjs")) ? [Number(name)] : [];
    } catch {
      return []; // it has ended meanwhile
    }
  });
}

function hasOpen(pid: number, home: string): boolean {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).some((fd) => {
      try {
        return /\/(users|policies)\.db(\.bak)?$/.test(readlinkSync(`${folder}/${fd}`).replace(home, ""));
      } catch {
        return false; // closed meanwhile
      }
    });
  } catch {
    return false;
  }
}
