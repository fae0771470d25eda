/**
 * Reports the state of the program to the service manager: systemd's protocol (sd_notify(3)), which other managers
 * implement, too.
 */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { openLibc, SystemError } from "./linux/libc.ts";
import { openNotifySocket, type NotifySocket } from "./linux/notify-socket.ts";
import { itemAt } from "#lib/at.ts";

/** Every method does nothing without a service manager, and never throws. */
export interface ServiceManager extends Disposable {
  /** The program serves; the first time the start is over, later a reload. `status` is shown to people. */
  ready(status: string): void;
  reloading(): void;
  stopping(): void;
  /** Another process is the program from now on; this one says nothing any more. */
  succeededBy(pid: number): void;
}

const NO_MANAGER: ServiceManager = {
  ready() {},
  reloading() {},
  stopping() {},
  succeededBy() {},
  [Symbol.dispose]() {},
};

/** The service manager passes in `env`: NOTIFY_SOCKET, and for a watchdog WATCHDOG_USEC and WATCHDOG_PID. */
export function openServiceManager(env: NodeJS.ProcessEnv, log: Log): ServiceManager {
  const path = env["NOTIFY_SOCKET"] ?? "";
  if (path === "" || process.platform !== "linux") return NO_MANAGER;
  const libc = openLibc();
  if (libc === null) {
    log.warning(`the service manager cannot be told anything: ${process.version} has no node:ffi`);
    return NO_MANAGER;
  }
  try {
    return new Notifier(openNotifySocket(libc, path), watchdogMs(env, process.pid), log);
  } catch (error) {
    log.warning(messageOf(error));
    return NO_MANAGER;
  }
}

/** How often a sign of life is wanted; null: never. */
export function watchdogMs(env: NodeJS.ProcessEnv, pid: number): number | null {
  const usec = Number(env["WATCHDOG_USEC"]);
  const meant = env["WATCHDOG_PID"] ?? "";
  if (!(usec > 0) || (meant !== "" && Number(meant) !== pid)) return null;
  return Math.max(1, Math.floor(usec / 1000));
}

/** Delay before the next attempt while the manager's queue is full. */
const AGAIN_MS = 100;
const SIGN_OF_LIFE = "WATCHDOG=1";

class Notifier implements ServiceManager {
  readonly #socket: NotifySocket;
  readonly #log: Log;
  readonly #alive: NodeJS.Timeout | null;
  /** In order. A sign of life never waits behind them: they are signs of life themselves. */
  readonly #unsaid: string[] = [];
  #again: NodeJS.Timeout | null = null;
  #failed = false;
  #isSucceeded = false;

  constructor(socket: NotifySocket, everyMs: number | null, log: Log) {
    this.#socket = socket;
    this.#log = log;
    // Half of what is allowed, from the event loop: a program that hangs gives no sign.
    this.#alive = everyMs === null ? null : setInterval(() => this.#live(), everyMs / 2).unref();
  }

  ready(status: string): void {
    this.#send(`READY=1\nSTATUS=${status}`);
  }

  reloading(): void {
    this.#send(`RELOADING=1\nMONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  stopping(): void {
    this.#send("STOPPING=1");
  }

  succeededBy(pid: number): void {
    this.#send(`MAINPID=${pid}`);
    this.#isSucceeded = true; // a reload that is asked of this process is not the service's
    if (this.#alive !== null) clearInterval(this.#alive);
  }

  [Symbol.dispose](): void {
    if (this.#alive !== null) clearInterval(this.#alive);
    if (this.#again !== null) clearTimeout(this.#again);
  }

  #live(): void {
    if (this.#unsaid.length === 0) this.#isSent(SIGN_OF_LIFE);
  }

  #send(text: string): void {
    if (this.#isSucceeded) return;
    this.#unsaid.push(text);
    if (this.#again === null) this.#sayAll();
  }

  #sayAll(): void {
    this.#again = null;
    while (this.#unsaid.length > 0 && this.#isSent(itemAt(this.#unsaid, 0))) this.#unsaid.shift();
    if (this.#unsaid.length > 0) this.#again = setTimeout(() => this.#sayAll(), AGAIN_MS).unref();
  }

  /** False: the manager's queue is full, which on many systems holds ten datagrams of all services together. */
  #isSent(text: string): boolean {
    try {
      this.#socket.send(text);
    } catch (error) {
      if (error instanceof SystemError && error.code === "EAGAIN") return false;
      if (!this.#failed) this.#log.warning(messageOf(error)); // once: the manager will not come back
      this.#failed = true;
    }
    return true;
  }
}
