import type { Dialer } from "#core/outbound.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import type { Destination } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { DEVICE_BYTES, type DestBoard, type DestDial } from "./dest-board.ts";

const LOOK_UP_MS = 5_000;

interface DestWayEnv {
  readonly dest: Destination;
  readonly dialer: Dialer;
  readonly nowMs: () => number;
  readonly board: DestBoard;
}

/** Tells the threads how dest is reached by one ordinary socket, where it is. */
export class DestWay {
  readonly #env: DestWayEnv;
  #isAsking = false;

  constructor(env: DestWayEnv) {
    this.#env = env;
  }

  /** Whenever a client has come: what they know is good for some seconds. */
  keepFresh(): void {
    const { board, dest, dialer } = this.#env;
    if (this.#isAsking || !board.isStale) return;
    try {
      const plan = dialer.plain?.(dest, null, () => AbortSignal.timeout(LOOK_UP_MS)) ?? null;
      if (plan instanceof Promise) this.#await(plan);
      else this.#tell(plan);
    } catch {
      this.#tell(null); // the dial says why
    }
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
    const isPlain = plan !== null && plan.wire === undefined && plan.interfaceName.length < DEVICE_BYTES;
    board.writeDial(isPlain ? dialOf(plan) : null, nowMs());
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
