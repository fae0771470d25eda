/** Datagrams to one address and back, by a connected socket: the system reports a closed port. */
import { createSocket, type Socket } from "node:dgram";
import { DialError } from "#core/errors.ts";
import type { Datagram, DatagramFlow, Endpoint } from "#core/session.ts";
import { endpointText } from "#core/session.ts";
import type { SocketMaker } from "#platform/socket-maker.ts";
import { familyOf } from "#net/address/ip.ts";

/**
 * Has a port of its own and receives from no address but the one that it was opened for. `closed` rejects with
 * `DialError` when the system reports the destination unreachable.
 */
export class ConnectedFlow implements DatagramFlow {
  readonly closed: Promise<void>;
  readonly #settle: PromiseWithResolvers<void>;
  readonly #socket: Socket;
  readonly #to: Endpoint;
  #on: (item: Datagram) => void = () => {};
  #isClosed = false;

  private constructor(socket: Socket, to: Endpoint) {
    this.#socket = socket;
    this.#to = to;
    this.#settle = Promise.withResolvers<void>();
    this.closed = this.#settle.promise;
    this.closed.catch(() => {}); // its users get the rejection themselves
    const from = { host: null, ...to };
    socket.on("message", (payload) => this.#on({ payload, destination: from }));
    socket.on("error", (error) => this.#failed(error));
  }

  /** Throws `DialError`. */
  static async open(to: Endpoint, sockets: SocketMaker | null): Promise<ConnectedFlow> {
    const family = familyOf(to.ip);
    const fd = sockets === null ? null : sockets.udp(family);
    const socket = createSocket({
      type: family === 4 ? "udp4" : "udp6",
      lookup: (address, _, callback) => callback(null, address, family), // always literal
    });
    const flow = new ConnectedFlow(socket, to);
    if (fd !== null) socket.bind({ fd, exclusive: true });
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.once("connect", resolve);
    socket.connect(to.port, to.ip);
    await Promise.race([promise, flow.closed]);
    return flow;
  }

  receive(on: (item: Datagram) => void): void {
    this.#on = on;
  }

  send({ payload }: Datagram): void {
    if (!this.#isClosed) this.#socket.send(payload, (error) => error === null || this.#failed(error));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close(null);
  }

  #failed(error: NodeJS.ErrnoException): void {
    const isRefused = error.code === "ECONNREFUSED";
    const why = isRefused ? "the port is closed" : error.message;
    const reason = isRefused ? "refused" : "unreachable";
    this.#close(new DialError(reason, `udp ${endpointText(this.#to)}: ${why}`, { cause: error }));
  }

  #close(failure: DialError | null): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
    if (failure === null) this.#settle.resolve();
    else this.#settle.reject(failure);
  }
}
