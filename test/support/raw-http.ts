/** HTTP by hand: bytes in, text out, for requests that no client library would send. */
import { once } from "node:events";
import { connect, type NetConnectOpts, type Socket } from "node:net";

export class RawClient implements Disposable {
  readonly socket: Socket;
  received = "";
  isClosed = false;
  #wake = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1");
      this.#wake();
    });
    socket.on("error", () => {}); // a reset is one of the outcomes that tests look for; `close` follows
    socket.on("close", () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  static async open(options: NetConnectOpts): Promise<RawClient> {
    const socket = connect({ noDelay: true, ...options } as NetConnectOpts);
    await once(socket, "connect");
    return new RawClient(socket);
  }

  send(text: string | Uint8Array): void {
    this.socket.write(text);
  }

  /** Resolves when this has come in; rejects when the connection closes before. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.received)) {
      if (this.isClosed) throw new Error(`closed before ${pattern}: ${JSON.stringify(this.received)}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.received;
  }

  async closed(): Promise<string> {
    while (!this.isClosed) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.received;
  }

  /** The statuses of the answers so far. */
  get statuses(): readonly number[] {
    return [...this.received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}
