/** The side of the old process: starts the new one, gives it everything, and takes it back where it fails. */
import { spawn, type ChildProcess } from "node:child_process";
import type { App } from "#app/app.ts";
import { messageOf } from "#core/errors.ts";
import type { Host } from "#host/host.ts";
import { MOST_PACKET_BYTES, openHandover, type Handover } from "#platform/handover.ts";
import { VERSION } from "#version.ts";
import { FakesElsewhere } from "./fakes-elsewhere.ts";
import { FORMATS, unreadable } from "./formats.ts";
import { LINK_VARIABLE } from "./link-variable.ts";
import { PROTOCOL } from "./messages.ts";
import { Peer } from "./peer.ts";
import { Outbox, Successor } from "./successor.ts";
import { unready } from "./unready.ts";

/** The upgrade has not been made, and nothing is changed by it. */
class UpgradeError extends Error {
  override readonly name = "UpgradeError";
}

/** What is started. */
export interface Target {
  readonly command: string;
  readonly args: readonly string[];
}

export interface OldProcess {
  readonly app: App;
  readonly host: Host;
  /** Of the process, for the new one. */
  readonly env: NodeJS.ProcessEnv;
}

/** Behind the standard streams. */
const LINK_FD = 3;

/** A program that says nothing within so long is none that knows this; a busy machine starts one in seconds. */
const HELLO_MS = 120_000;
/** Reading a large configuration. */
const CHECKED_MS = 120_000;
/** Opening stores, lists and databases. */
const READY_MS = 300_000;
const STARTED_MS = 120_000;
/** As base64 it fits a packet. */
const PIECE_BYTES = MOST_PACKET_BYTES / 2;

/**
 * Rejects with `UpgradeError`, and everything goes on here as before. When it resolves the new process serves. `stop`: weir
 * is to end, and the new process with it.
 */
export async function upgradeTo(target: Target, old: OldProcess, stop: AbortSignal): Promise<Successor> {
  if (stop.aborted) throw new UpgradeError(String(stop.reason));
  const handover = openHandover();
  if (handover === null) throw new UpgradeError("this system or runtime cannot hand sockets over");
  refuseInit();
  const missing = unready(old.app.config);
  if (missing.length > 0)
    throw new UpgradeError(`what cannot be handed over yet, and takes a restart: ${missing.join("; ")}`);
  const { config } = old.app;
  await using starting = new StartingProcess(target, old.env, { handover, stop });
  const { peer, child } = starting;
  try {
    await introduce(peer, old);
    const forwarded = { outbox: new Outbox(), fakes: new FakesElsewhere(peer) };
    const give = async (): Promise<boolean> => {
      if (old.app.config !== config)
        throw new UpgradeError("the configuration has changed meanwhile; ask again");
      return giveStores(starting, old, forwarded);
    };
    if (!(await old.app.handOver(give))) throw new UpgradeError(starting.why ?? "it has failed");
    starting.keep();
    forwarded.fakes.begin();
    return new Successor(child, peer, { host: old.host, outbox: forwarded.outbox });
  } catch (error) {
    throw error instanceof UpgradeError ? error : new UpgradeError(await starting.reasonOf(error));
  }
}

/** The end of process 1 is the end of a container or of the machine. */
function refuseInit(): void {
  if (process.pid === 1)
    throw new UpgradeError("weir is process 1 here: all others would end with it; restart the container");
}

/** Who is who, which files each of them can read, and the sockets. */
async function introduce(peer: Peer, { app }: OldProcess): Promise<void> {
  const { protocol, version, formats } = await peer.hear("hello", HELLO_MS);
  if (protocol !== PROTOCOL)
    throw new UpgradeError(
      `weir ${version} takes over by protocol ${protocol}, this is ${PROTOCOL}: restart`,
    );
  const lost = unreadable(FORMATS, formats);
  if (lost.length > 0)
    throw new UpgradeError(`weir ${version} is older and would lose of ${lost.join("; of ")}`);
  const strange = unreadable(formats, FORMATS);
  if (strange.length > 0)
    throw new UpgradeError(
      `weir ${version} keeps what this version could not read if it failed: ${strange.join("; ")}; make a backup and restart`,
    );
  const sockets = await app.listening();
  peer.say({
    kind: "begin",
    protocol: PROTOCOL,
    version: VERSION,
    formats: FORMATS,
    sockets: sockets.length,
  });
  for (const { key, fd, endpoint, detail = null } of sockets)
    peer.say({ kind: "socket", key, endpoint, detail }, fd);
  await peer.hear("checked", CHECKED_MS);
}

/** What the new process is asked for, and told, from the moment on at which it has the stores. */
interface Forwarded {
  readonly outbox: Outbox;
  readonly fakes: FakesElsewhere;
}

/** False: it has failed, and everything is as it was. */
async function giveStores(
  starting: StartingProcess,
  { app, host }: OldProcess,
  { outbox, fakes }: Forwarded,
): Promise<boolean> {
  const { peer } = starting;
  try {
    await letGo(host, outbox);
    const { uploadTotalBytes, downloadTotalBytes } = host.live;
    peer.say({ kind: "stores", totals: [uploadTotalBytes, downloadTotalBytes] });
    await peer.hear("ready", READY_MS);
    await app.pauseBypasses();
    for (const { key, bytes } of app.pause(fakes.allocate))
      for (let at = 0; at < bytes.length; at += PIECE_BYTES)
        peer.say({
          kind: "state",
          key,
          piece: Buffer.from(bytes.subarray(at, at + PIECE_BYTES)).toString("base64"),
        });
    peer.say({ kind: "go" });
    await peer.hear("started", STARTED_MS);
    return true;
  } catch (error) {
    starting.why = await starting.reasonOf(error);
    await starting.kill(); // behind its end no process has the files
    app.resume();
    fakes.end();
    await takeBack(host, outbox);
    return false;
  }
}

/** What is counted from here on is in `outbox` or in memory. */
async function letGo(host: Host, outbox: Outbox): Promise<void> {
  await host.journal.release();
  await host.users.release();
  await host.governance.release(outbox.forward);
  host.cache.release();
  await host.stores.release();
}

/** A file that cannot be opened again is said, and tried no more: what was counted stays in memory. */
async function takeBack(host: Host, outbox: Outbox): Promise<void> {
  try {
    await host.stores.reclaim();
  } catch (error) {
    host.log.error(`a store cannot be opened again, restart weir: ${messageOf(error)}`);
  }
  host.cache.reclaim();
  host.ledger.settle(0);
  host.governance.reclaim(outbox.takeSums());
  host.users.reclaim();
  await host.journal.reclaim();
}

interface Ends {
  readonly handover: Handover;
  readonly stop: AbortSignal;
}

/** The new process until it serves; it is killed where it does not come to that. */
class StartingProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly peer: Peer;
  why: string | null = null;
  #isKept = false;
  readonly #stop: AbortSignal;
  readonly #exited = Promise.withResolvers<string>();
  readonly #onEnd = (): void => void this.child.kill("SIGKILL");

  constructor({ command, args }: Target, env: NodeJS.ProcessEnv, { handover, stop }: Ends) {
    this.#stop = stop;
    const { link, theirs } = handover.pair();
    const { WATCHDOG_PID: _, ...rest } = env; // the service manager meant this process
    try {
      this.child = spawn(command, args, {
        env: { ...rest, [LINK_VARIABLE]: `${LINK_FD} ${process.pid}` },
        stdio: ["inherit", "inherit", "inherit", theirs],
      });
    } catch (error) {
      link[Symbol.dispose]();
      throw error;
    } finally {
      handover.close(theirs);
    }
    const { pid } = this.child;
    const uid = process.getuid?.();
    this.peer = new Peer(link, (sender) => sender?.pid === pid && sender?.uid === uid);
    this.child.once("error", (error) => this.#exited.resolve(messageOf(error)));
    this.child.once("exit", (code, signal) => this.#exited.resolve(`ended with ${signal ?? `code ${code}`}`));
    process.once("exit", this.#onEnd);
    stop.addEventListener("abort", this.#onEnd);
  }

  /** Why it has failed, in words. */
  async reasonOf(error: unknown): Promise<string> {
    if (this.#stop.aborted) return String(this.#stop.reason);
    const soon = new Promise<null>((resolve) => void setTimeout(resolve, 1_000, null));
    const end = this.peer.isOpen ? null : await Promise.race([this.#exited.promise, soon]);
    const text = messageOf(error);
    return end === null ? text : `${text} (${end})`;
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.#exited.promise;
  }

  /** It is the program from now on. */
  keep(): void {
    this.#isKept = true;
    this.#forget();
  }

  #forget(): void {
    process.off("exit", this.#onEnd);
    this.#stop.removeEventListener("abort", this.#onEnd);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#forget();
    if (this.#isKept) return;
    this.peer[Symbol.dispose]();
    await this.kill();
  }
}
