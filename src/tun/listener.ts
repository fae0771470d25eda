/** Listeners of the kernel behind a TUN: where the stack sends TCP, and where auto-redirect does. */
import { once } from "node:events";
import { closeSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { descriptorOf } from "#core/handover.ts";
import type { Endpoint, Ip } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { guardErrors } from "#net/listen/accept.ts";
import { ANY_V4, ANY_V6 } from "#net/address/ip.ts";
import { errnoOf } from "#core/errors.ts";
import { boundAddress } from "#core/sockets.ts";
import { duplicateDescriptor } from "#platform/handover.ts";

const BACKLOG = 4096;
/** The address of a new device may not be ready at once. */
const TRIES = 3;
const RETRY_MS = 1000;
/** Connections before `activate`; beyond it they are closed. */
const MOST_WAITING = 1024;

export class TunListener {
  readonly port: number;
  readonly #ip: Ip;
  #server: Server;
  /** A descriptor of the socket while nothing listens by it here; -1: `#server` does. */
  #fd: number;
  readonly #on: (socket: StreamSocket) => void;
  readonly #waiting: StreamSocket[] = [];
  #active = false;

  private constructor(server: Server, at: Endpoint, fd: number, on: (socket: StreamSocket) => void) {
    this.#server = server;
    this.#fd = fd;
    this.#on = on;
    this.#ip = at.ip;
    this.port = at.port;
    this.#follow(server);
  }

  /** Goes on with one of another process of weir, which is owned from here on; clients wait in the kernel until `activate`. */
  static adopt(at: Endpoint, fd: number, on: (socket: StreamSocket) => void): TunListener {
    return new TunListener(newServer(), at, fd, on);
  }

  /** At a free port. `::` takes both families, where the machine has both. Nothing is handed over before `activate`. */
  static async open(ip: Ip, on: (socket: StreamSocket) => void): Promise<TunListener> {
    for (let tried = 1; ; tried++) {
      const server = newServer();
      try {
        server.listen({ host: ip, port: 0, backlog: BACKLOG });
        await once(server, "listening");
        return new TunListener(server, { ip, port: boundAddress(server).port }, -1, on);
      } catch (error) {
        const code = errnoOf(error);
        if (ip === ANY_V6 && code === "EAFNOSUPPORT") return TunListener.open(ANY_V4, on);
        if (tried === TRIES || code !== "EADDRNOTAVAIL") throw error;
        await sleep(RETRY_MS);
      }
    }
  }

  activate(): void {
    this.#active = true;
    for (const socket of this.#waiting.splice(0)) this.#on(socket);
    if (this.#fd < 0) return;
    this.#server.listen({ fd: this.#fd, backlog: BACKLOG }); // which is the server's from here on
    this.#fd = -1;
  }

  /** As another process takes it. */
  get listening(): { readonly fd: number; readonly endpoint: Endpoint } {
    const fd = this.#fd < 0 ? descriptorOf(this.#server) : this.#fd;
    return { fd, endpoint: { ip: this.#ip, port: this.port } };
  }

  /** Accepts no more until `activate`; who comes waits in the kernel, for whoever else has the socket, too. Throws `SystemError`. */
  pause(): void {
    if (this.#fd >= 0) return;
    this.#fd = duplicateDescriptor(descriptorOf(this.#server));
    this.#server.close();
    this.#server = this.#follow(newServer());
  }

  /** Accepted connections continue. */
  close(): void {
    for (const socket of this.#waiting.splice(0)) socket.destroy();
    if (this.#fd >= 0) closeSync(this.#fd);
    else this.#server.close();
    this.#fd = -1;
  }

  #follow(server: Server): Server {
    server.on("error", () => {
      // After listening only accept() fails (descriptors exhausted); the kernel keeps the connection for the next try.
    });
    return server.on("connection", (socket) => {
      guardErrors(socket);
      if (this.#active) this.#on(socket);
      else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(socket);
      else socket.destroy();
    });
  }
}

function newServer(): Server {
  return createServer({ allowHalfOpen: true, noDelay: true });
}
