/** Listeners of the kernel behind a TUN: where the stack sends TCP, and where auto-redirect does. */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Ip } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { guardErrors } from "#net/listen/accept.ts";
import { ANY_V4, ANY_V6 } from "#net/address/ip.ts";
import { errnoOf } from "#core/errors.ts";
import { boundAddress } from "#core/sockets.ts";

const BACKLOG = 4096;
/** The address of a new device may not be ready at once. */
const TRIES = 3;
const RETRY_MS = 1000;
/** Connections before `activate`; beyond it they are closed. */
const MOST_WAITING = 1024;

export class TunListener {
  readonly port: number;
  readonly #server: Server;
  readonly #on: (socket: StreamSocket) => void;
  readonly #waiting: StreamSocket[] = [];
  #active = false;

  private constructor(server: Server, on: (socket: StreamSocket) => void) {
    this.#server = server;
    this.#on = on;
    this.port = boundAddress(server).port;
    server.on("error", () => {
      // After listening only accept() fails (descriptors exhausted); the kernel keeps the connection for the next try.
    });
    server.on("connection", (socket) => {
      guardErrors(socket);
      if (this.#active) this.#on(socket);
      else if (this.#waiting.length < MOST_WAITING) this.#waiting.push(socket);
      else socket.destroy();
    });
  }

  /** At a free port. `::` takes both families, where the machine has both. Nothing is handed over before `activate`. */
  static async open(ip: Ip, on: (socket: StreamSocket) => void): Promise<TunListener> {
    for (let tried = 1; ; tried++) {
      const server = createServer({ allowHalfOpen: true, noDelay: true });
      try {
        server.listen({ host: ip, port: 0, backlog: BACKLOG });
        await once(server, "listening");
        return new TunListener(server, on);
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
  }

  /** Accepted connections continue. */
  close(): void {
    for (const socket of this.#waiting.splice(0)) socket.destroy();
    this.#server.close();
  }
}
