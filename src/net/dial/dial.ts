/** One TCP handshake to one literal address. */
import { createConnection, Socket } from "node:net";
import { getSystemErrorName } from "node:util";
import { asDialError, DialError } from "#core/errors.ts";
import { endpointText } from "#core/session.ts";
import type { Endpoint } from "#core/session.ts";
import type { SocketMaker } from "#platform/socket-maker.ts";
import { familyOf } from "#net/address/ip.ts";

export interface DialOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Null: an ordinary socket of the runtime. */
  readonly sockets: SocketMaker | null;
  /** Called with the socket once it has a near end, before any other part of the program can have met it. */
  readonly onBound?: (socket: Socket) => void;
}

/**
 * A connected socket with `allowHalfOpen` and `noDelay`. Throws `DialError` with the reason; nothing is left open.
 * From then on the errors of the socket belong to the caller; until it listens, one that comes is swallowed.
 */
export function dialTcp(to: Endpoint, { signal, timeoutMs, sockets, onBound }: DialOptions): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new DialError("aborted", `dial ${endpointText(to)}: aborted`));
    let socket: Socket;
    try {
      socket = openSocket(to, sockets);
    } catch (error) {
      return reject(asDialError(error, `dial ${endpointText(to)}`));
    }
    // The runtime calls connect(2) for a literal address in the next tick, too, and has asked for that first.
    if (onBound !== undefined) process.nextTick(onBound, socket);
    const fail = (error: DialError): void => {
      settle();
      socket.destroy();
      reject(error);
    };
    const onAbort = (): void => fail(new DialError("aborted", `dial ${endpointText(to)}: aborted`));
    const onTimeout = (): void => fail(lateError(to, timeoutMs));
    const timer = setTimeout(onTimeout, timeoutMs);
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    signal.addEventListener("abort", onAbort);
    // Stays for good: an error between the handshake and the caller's own listener must not end the process.
    socket.on("error", (error) => fail(asDialError(error, `dial ${endpointText(to)}`)));
    socket.once("connect", () => {
      settle();
      resolve(socket);
    });
  });
}

export function lateError(to: Endpoint, timeoutMs: number): DialError {
  return new DialError("timeout", `dial ${endpointText(to)}: no answer within ${timeoutMs} ms`);
}

/** A refused connect(2) as the runtime's sockets have it; `errno` is negative. */
export function connectError(to: Endpoint, errno: number): DialError {
  const code = getSystemErrorName(errno);
  const error = Object.assign(new Error(`connect ${code} ${to.ip}:${to.port}`), { code, errno });
  return asDialError(error, `dial ${endpointText(to)}`);
}

function openSocket({ ip, port }: Endpoint, sockets: SocketMaker | null): Socket {
  const options = { host: ip, port, noDelay: true, autoSelectFamily: false };
  if (sockets === null) return createConnection({ ...options, allowHalfOpen: true });
  const fd = sockets.tcp(familyOf(ip));
  let socket: Socket;
  try {
    // Without manualStart the runtime would read at once, and an unconnected socket answers that with an error.
    socket = new Socket({ fd, allowHalfOpen: true, manualStart: true } as { fd: number });
  } catch (error) {
    sockets.discard(fd);
    throw error;
  }
  return socket.connect(options);
}
