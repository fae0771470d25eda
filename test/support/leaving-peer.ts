/** A peer that speaks TLS and goes on beside it over the bare socket, as a peer of Vision does, with what a test has it say. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { connect as connectTls, TLSSocket } from "node:tls";
import { certificate } from "./tls-origin.ts";

/** What TLS lies over: the socket, as long as it is not left behind. */
class Below extends Duplex {
  readonly socket: Socket;
  /** Null: what is written goes to the socket. */
  held: Buffer[] | null = null;

  constructor(socket: Socket) {
    super({ allowHalfOpen: true });
    this.socket = socket;
    socket.on("data", (bytes: Buffer) => this.push(bytes));
    socket.on("end", () => this.push(null));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    if (this.held === null) this.socket.write(bytes);
    else this.held.push(bytes);
    done();
  }

  override _final(done: () => void): void {
    this.socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.socket.destroy();
    done(error);
  }
}

export interface LeavingPeer extends Disposable {
  readonly socket: Socket;
  /** Each of these goes into a record of its own. */
  say(bytes: Uint8Array): Promise<void>;
  /** The same, with bare bytes right behind it in one piece. */
  sayAndLeave(bytes: Uint8Array, bare: Uint8Array): Promise<void>;
  /** All that has come in TLS. */
  readonly secured: () => Buffer;
  /** Sizes of what each record had in it. */
  readonly pieces: readonly number[];
  /** By an end, or a fault. */
  readonly ended: Promise<unknown>;
}

function peerOver(tls: TLSSocket, below: Below): LeavingPeer {
  const secured: Buffer[] = [];
  const pieces: number[] = [];
  tls.on("error", () => {});
  below.on("error", () => {});
  tls.on("data", (bytes: Buffer) => {
    secured.push(bytes);
    pieces.push(bytes.length);
  });
  const say = (bytes: Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => tls.write(bytes, (error) => (error ? reject(error) : resolve())));
  return {
    socket: below.socket,
    say,
    async sayAndLeave(bytes, bare) {
      below.held = [];
      await say(bytes);
      below.socket.write(Buffer.concat([...below.held, bare]));
    },
    secured: () => Buffer.concat(secured),
    pieces,
    ended: new Promise((resolve) => void tls.once("end", resolve).once("close", resolve)),
    [Symbol.dispose]: () => void below.destroy(),
  };
}

/** To a listener with TLS. */
export async function dialLeaving(port: number): Promise<LeavingPeer> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  await once(socket, "connect");
  const below = new Below(socket);
  const tls = connectTls({ socket: below, servername: "server.test", rejectUnauthorized: false });
  await once(tls, "secureConnect");
  return peerOver(tls, below);
}

/** A client of a server that shows the certificate of `server.test`. */
export async function acceptLeaving(socket: Socket): Promise<LeavingPeer> {
  const below = new Below(socket);
  const tls = new TLSSocket(below, { isServer: true, cert: certificate.cert, key: certificate.key });
  const peer = peerOver(tls, below);
  await once(tls, "secure");
  return peer;
}
