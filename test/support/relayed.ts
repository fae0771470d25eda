/** A listener that relays every connection to one origin through the portable pump: the smallest thing that relays. */
import { EventEmitter, once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Direction, Meter } from "#core/meter.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { dialTcp } from "#net/dial/dial.ts";
import { relay } from "#dataplane/event-loop/pump.ts";
import type { RelayOptions } from "#dataplane/event-loop/pump.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";

export interface Relayed extends AsyncDisposable {
  readonly port: number;
  /** A connected client. */
  dial(): Promise<Socket>;
  /** Connections that are over, among them those whose dial failed (the client is reset). */
  readonly settled: number;
  /** Waits until so many are over. */
  untilSettled(count?: number): Promise<void>;
  readonly bytes: Readonly<Record<Direction, number>>;
}

/** Never holds, never drops. What it is asked to count is counted by the live table. */
export const unlimited: Meter = {
  free: true,
  pieceBytes: Number.MAX_SAFE_INTEGER,
  reserve: () => 0,
  trySend: () => 0,
  adjust() {},
  admit: () => true,
  [Symbol.dispose]() {},
};

/** Asks for leave in small pieces, and gives it; `reserved` is what has been asked for, less what was given back. */
export function grantingMeter(): { readonly meter: Meter; readonly reserved: Record<Direction, number> } {
  const reserved = { upload: 0, download: 0 };
  const meter: Meter = {
    ...unlimited,
    free: false,
    pieceBytes: 5_000,
    reserve(direction, bytes) {
      reserved[direction] += bytes;
      return 0;
    },
    adjust: (direction, bytes) => void (reserved[direction] += bytes),
  };
  return { meter, reserved };
}

export interface RelayedOptions extends Partial<
  Pick<RelayOptions, "idleMs" | "halfClosedIdleMs" | "timers">
> {
  readonly signal?: AbortSignal;
  readonly meter?: Meter;
  readonly backend?: RelayOptions["backend"];
  /** What a client's socket becomes before it is relayed. */
  readonly front?: (socket: Socket) => Promise<Duplex>;
  /** What the socket to the origin becomes. */
  readonly back?: (socket: Socket) => Duplex | Promise<Duplex>;
}

export async function openRelayed(originPort: number, options: RelayedOptions = {}): Promise<Relayed> {
  const stop = new AbortController();
  const signal = options.signal ?? stop.signal;
  const bytes = { upload: 0, download: 0 };
  let settled = 0;
  const ends = new EventEmitter();
  const settle = (): void => {
    settled++;
    ends.emit("end");
  };
  const relayOptions: RelayOptions = {
    signal,
    onBytes: (direction, count) => void (bytes[direction] += count),
    timers: options.timers ?? new IdleTimers(),
    idleMs: options.idleMs ?? Infinity,
    halfClosedIdleMs: options.halfClosedIdleMs ?? Infinity,
    backend: options.backend ?? null,
  };
  const serveOne = async (socket: Socket): Promise<void> => {
    socket.on("error", () => {});
    const client = (await options.front?.(socket)) ?? socket;
    client.on("error", () => {});
    const to = { ip: LOOPBACK_V4, port: originPort };
    const dialled = await dialTcp(to, { signal, timeoutMs: 5_000, sockets: null });
    const remote = (await options.back?.(dialled)) ?? dialled;
    await relay(client, remote, options.meter ?? unlimited, relayOptions);
    settle();
  };
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    serveOne(client).catch(() => {
      settle();
      client.resetAndDestroy();
    });
  });
  server.listen(0, LOOPBACK_V4);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async dial() {
      const socket = connect({ port, host: LOOPBACK_V4, allowHalfOpen: true, noDelay: true });
      await once(socket, "connect");
      return socket;
    },
    get settled() {
      return settled;
    },
    async untilSettled(count = 1) {
      while (settled < count) await once(ends, "end");
    },
    bytes,
    async [Symbol.asyncDispose]() {
      stop.abort();
      server.close();
      await once(server, "close");
    },
  };
}
