/** The side of the new process: takes everything from the old one, and counts what is still counted there. */
import { closeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { AllocateFake } from "#app/runtimes.ts";
import type { Config } from "#config/config.ts";
import type { AuditDraft } from "#core/audit.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Endpoint, Ip } from "#core/session.ts";
import type { Host } from "#host/host.ts";
import { parseIp } from "#net/address/ip.ts";
import { InheritedSockets } from "#net/listen/inherited-sockets.ts";
import { openHandover } from "#platform/handover.ts";
import { isDeviceKey } from "#tun/handing-over.ts";
import { VERSION } from "#version.ts";
import { CountsTaken } from "./counts-taken.ts";
import { FORMATS, unreadable } from "./formats.ts";
import { PROTOCOL, type MessageOf } from "./messages.ts";
import { LINK_VARIABLE } from "./link-variable.ts";
import { Peer, PeerError } from "./peer.ts";
import { unready } from "./unready.ts";

/** It waits for this one at each step; a store on a slow medium takes its time. */
const STEP_MS = 400_000;
/** Between two counters; the old process says something each second. */
const SILENCE_MS = 180_000;
/** Its descriptors close before its end shows. */
const DEATH_MS = 2_000;

/** Null: this process was not started by another weir. Throws `ConfigError` where what it was given is no way to one. */
export function openArrival(env: NodeJS.ProcessEnv, log: Log): Arrival | null {
  const given = env[LINK_VARIABLE];
  if (given === undefined) return null;
  delete env[LINK_VARIABLE]; // not for programs that this one starts
  const [fd = -1, pid = -1] = given.split(" ").map(Number);
  const handover = openHandover();
  if (handover === null)
    throw new ConfigError(`${LINK_VARIABLE}: this system or runtime cannot take sockets over`);
  const { link, maker } = handover.adopt(fd);
  if (maker.pid !== pid || maker.uid !== process.getuid?.() || process.ppid !== pid)
    throw new ConfigError(`${LINK_VARIABLE}: descriptor ${fd} does not come from process ${pid}`);
  return new Arrival(new Peer(link, () => true), pid, log);
}

export class Arrival implements Disposable {
  readonly sockets = new InheritedSockets();
  readonly #peer: Peer;
  readonly #pid: number;
  readonly #log: Log;
  /** The old process has died, and everything is this one's. */
  #isAlone = false;
  readonly #left = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();

  constructor(peer: Peer, pid: number, log: Log) {
    this.#peer = peer;
    this.#pid = pid;
    this.#log = log;
  }

  /** Takes the sockets over; what may fail before is over. Rejects with `PeerError`, `ConfigError`. */
  async check(config: Config): Promise<void> {
    const peer = this.#peer;
    peer.say({ kind: "hello", protocol: PROTOCOL, version: VERSION, formats: FORMATS });
    const { sockets, formats, version } = await peer.hear("begin", STEP_MS);
    const lost = unreadable(formats, FORMATS);
    if (lost.length > 0)
      throw new ConfigError(`weir ${version} has what this one would lose: ${lost.join("; ")}`);
    for (let left = sockets; left > 0; left--) {
      const { key, endpoint, detail, fd } = await peer.hear("socket", STEP_MS);
      if (fd < 0) throw new PeerError(`there was no socket for ${key}`);
      this.sockets.add({ key, fd, endpoint: endpointIn(endpoint), detail });
    }
    const missing = [...unready(config), ...this.#newTuns(config)];
    if (missing.length > 0)
      throw new ConfigError(`what cannot be taken over yet, and takes a restart: ${missing.join("; ")}`);
    peer.say({ kind: "checked" });
  }

  /** What it makes in the kernel would be left there if this process failed. */
  #newTuns({ tun, tunListeners }: Config): readonly string[] {
    const wants = tun.enable || tunListeners.some(({ enable }) => enable);
    return wants && !this.sockets.keys.some(isDeviceKey) ? ["tun: none is in force yet"] : [];
  }

  /** Resolves when the stores are this process's, with the bytes that were moved before. Rejects with `PeerError`. */
  async stores(): Promise<readonly [upload: number, download: number]> {
    return this.#unlessAlone(async () => (await this.#peer.hear("stores", STEP_MS)).totals, [0, 0]);
  }

  /**
   * Everything is ready to serve; resolves when it is to begin, with what is called when it has. Rejects with `PeerError`:
   * then this process has to end.
   */
  async begin(host: Host, allocate: AllocateFake): Promise<() => void> {
    const counts = new CountsTaken(host);
    this.#peer.divert("fake", ({ seq, family, host: name }) => {
      const say = (ip: Ip | null): void => this.#peer.say({ kind: "faked", seq, ip });
      allocate(family, name)
        .then(say, () => say(null))
        .catch(() => {}); // the old process has ended
    });
    await this.#unlessAlone(async () => {
      this.#peer.say({ kind: "ready" });
      await this.#states();
    }, undefined);
    return () => {
      if (this.#isAlone) return this.#end();
      this.#peer.say({ kind: "started" });
      void this.#follow(host, counts);
    };
  }

  /** What the old process remembers of what it hands over, until it says that this one is to begin. */
  async #states(): Promise<void> {
    for (;;) {
      const { message, fd } = await this.#peer.next(STEP_MS);
      if (fd >= 0) closeSync(fd);
      if (message.kind === "go") return;
      if (message.kind !== "state") throw new PeerError(`it said ${message.kind} in place of go`);
      this.sockets.addState(message.key, Buffer.from(message.piece, "base64"));
    }
  }

  /** Settles when nothing more comes of the old process. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Settles when the old process listens no more. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  /** All that is to listen here does. */
  settled(): void {
    for (const key of this.sockets.closeRest()) this.#log.info(`nothing listens any more at ${key}`);
  }

  fail(reason: string): void {
    this.#peer.say({ kind: "failed", reason: reason.slice(0, 4000) });
  }

  [Symbol.dispose](): void {
    this.#peer[Symbol.dispose]();
  }

  async #follow(host: Host, counts: CountsTaken): Promise<void> {
    let isOver = false;
    try {
      while (!isOver) {
        const { message, fd } = await this.#peer.next(SILENCE_MS);
        if (fd >= 0) closeSync(fd);
        if (message.kind === "left") this.#left.resolve();
        else if (message.kind === "event") host.journal.take(message.draft, message.mark);
        else if (message.kind === "audit") this.#record(host, message.draft);
        else if (message.kind === "counts") {
          const barred = await counts.take(message);
          this.#peer.say({ kind: "taken", seq: message.seq, barred: [...barred] });
          isOver = message.isLast;
        } else throw new PeerError(`it said ${message.kind}`);
      }
      this.#log.info(`process ${this.#pid} has given its last counters`);
    } catch (error) {
      this.#log.error(
        `process ${this.#pid}, which served before, gives no counters any more: ${messageOf(error)}; the last second of its connections is lost`,
      );
    } finally {
      this.#end();
    }
  }

  #record(host: Host, draft: AuditDraft): void {
    host.journal.record(draft).catch((error: unknown) => {
      this.#log.error(`an entry of the process before is not in the audit log: ${messageOf(error)}`);
    });
  }

  #end(): void {
    this.#left.resolve();
    this.#over.resolve();
    this.sockets.end();
    this.#peer[Symbol.dispose]();
  }

  /** Where the old process has died in the middle everything it had is free, and the clients wait at the sockets. */
  async #unlessAlone<T>(work: () => Promise<T>, alone: T): Promise<T> {
    if (this.#isAlone) return alone;
    try {
      return await work();
    } catch (error) {
      if (this.#peer.isOpen || !(await this.#hasDied())) throw error;
      this.#isAlone = true;
      this.#log.warning(`process ${this.#pid} has died; this one takes its place`);
      return alone;
    }
  }

  async #hasDied(): Promise<boolean> {
    for (const untilMs = performance.now() + DEATH_MS; performance.now() < untilMs; await delay(10))
      if (process.ppid !== this.#pid) return true;
    return false;
  }
}

/** Null where it has none. */
function endpointIn(written: MessageOf<"socket">["endpoint"]): Endpoint | null {
  const ip = written === null ? null : parseIp(written.ip);
  return written === null || ip === null ? null : { ip, port: written.port };
}
