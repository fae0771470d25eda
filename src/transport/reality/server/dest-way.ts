import { performance } from "node:perf_hooks";
import type { Dialer } from "#core/outbound.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import type { Destination } from "#core/session.ts";
import { bytesOfIp, toDestination } from "#net/address/ip.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { DEVICE_BYTES, type DestBoard, type DestDial } from "./dest-board.ts";

const LOOK_UP_MS = 5_000;
/** What the threads know is good for a little longer than twice as long. */
const REFRESH_MS = 2_000;
/** The name of dest is looked up again behind so long. */
const ADDRESS_MS = 60_000;

interface DestWayEnv {
  readonly dest: Destination;
  readonly dialer: Dialer;
  readonly nowMs: () => number;
  readonly board: DestBoard;
}

/** Where dest is, and until when that is good. */
interface Found {
  readonly at: Destination;
  readonly untilMs: number;
  /** Its dial: less where dest has other addresses, which the main thread tries. */
  readonly timeoutMs: number;
}

/**
 * Tells the threads how dest is reached by one ordinary socket, where it is, from now on: without clients, too, or the first one
 * behind a pause would be the main thread's, which may be the only one for hours where streams share connections.
 */
export class DestWay implements Disposable {
  readonly #env: DestWayEnv;
  readonly #timer: NodeJS.Timeout;
  #isAsking = false;
  #found: Found | null = null;

  constructor(env: DestWayEnv) {
    this.#env = env;
    this.#timer = setInterval(() => this.#refresh(), REFRESH_MS).unref();
    this.#refresh();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #refresh(): void {
    if (this.#isAsking) return;
    try {
      const plan =
        this.#env.dialer.plain?.(this.#place(), null, () => AbortSignal.timeout(LOOK_UP_MS)) ?? null;
      if (plan instanceof Promise) this.#await(plan);
      else this.#tell(plan);
    } catch {
      this.#tell(null); // the dial says why
    }
  }

  #place(): Destination {
    if (this.#found !== null && performance.now() < this.#found.untilMs) return this.#found.at;
    this.#found = null;
    return this.#env.dest;
  }

  #await(plan: Promise<DialPlan | null>): void {
    this.#isAsking = true;
    plan
      .then(
        (found) => this.#tell(found),
        () => this.#tell(null),
      )
      .finally(() => void (this.#isAsking = false));
  }

  #tell(plan: DialPlan | null): void {
    const { board, nowMs } = this.#env;
    if (plan === null || plan.wire !== undefined || plan.interfaceName.length >= DEVICE_BYTES) {
      this.#found = null;
      return board.writeDial(null, nowMs());
    }
    const { ip, port, timeoutMs } = plan;
    const untilMs = performance.now() + ADDRESS_MS;
    this.#found ??= { at: toDestination(ip, port), timeoutMs, untilMs };
    board.writeDial(dialOf({ ...plan, timeoutMs: Math.min(timeoutMs, this.#found.timeoutMs) }), nowMs());
  }
}

function dialOf({ ip, port, routingMark, interfaceName, probes, timeoutMs }: DialPlan): DestDial {
  const address = new Uint8Array(SOCKADDR_BYTES);
  const size = encodeSockaddr(address, { address: bytesOfIp(ip), port });
  return {
    address: address.subarray(0, size),
    mark: routingMark,
    timeoutMs,
    idleSeconds: probes === null ? 0 : Math.ceil(probes.idleMs / 1_000),
    intervalSeconds: probes === null ? 0 : Math.ceil(probes.intervalMs / 1_000),
    device: Buffer.from(interfaceName),
  };
}
