/** What hostile clients send to a TLS listener, and what it answers. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { duplexPair } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { descriptorOf } from "#core/handover.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";

/** What a client of today begins with. */
export async function clientHello(tls: object = {}): Promise<Buffer> {
  const [near, far] = duplexPair();
  const client = connectTls({ socket: near, servername: "server.test", rejectUnauthorized: false, ...tls });
  client.on("error", () => {});
  const [hello] = (await once(far, "data")) as [Buffer];
  client.destroy();
  return hello;
}

/** No handshakes; `hello` is a good one's beginning. */
export async function nonsense(hello: Buffer): Promise<readonly (readonly [what: string, bytes: Buffer])[]> {
  const flipped = Buffer.from(hello);
  flipped[9] = 0x01; // the version inside
  return [
    ["a web request", Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n")],
    ["zeros", Buffer.alloc(2_000)],
    ["an alert", Buffer.from("15030100020100", "hex")],
    ["application data", Buffer.concat([Buffer.from("1703030040", "hex"), Buffer.alloc(64)])],
    ["a record too long", Buffer.concat([Buffer.from("16030148ff", "hex"), Buffer.alloc(20_000)])],
    ["an empty record", Buffer.from("1603010000", "hex")],
    ["SSL 2", Buffer.from("802e0100020015000000100100800300800700c0", "hex")],
    ["a hello with garbage behind it", Buffer.concat([hello, Buffer.alloc(300, 0x55)])],
    ["a hello of TLS 1.1", flipped],
    ["no protocol in common", await clientHello({ ALPNProtocols: ["nonsense"] })],
    ["half a hello and the end", hello.subarray(0, 100)],
  ];
}

/**
 * More than is read of a client that is refused: a close over the rest is a reset. Where a server reads on another thread
 * than its client writes, the rest may not have come by then, and the close is an end; so it has to wait there first.
 */
export const MUCH_GARBAGE = ["much garbage", Buffer.alloc(200_000, 0x47)] as const;

/** What a client sends to a listener, and what it gets. */
export class UnknownClient {
  readonly #parts: Buffer[] = [];
  readonly #socket: Socket;
  #how = "silence";

  constructor(port: number, bytes: Buffer, ends: boolean) {
    this.#socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true }, () => {
      this.#socket.write(bytes);
      if (ends) this.#socket.end();
    });
    this.#socket.on("data", (part: Buffer) => void this.#parts.push(part));
    this.#socket.on("error", (error: NodeJS.ErrnoException) => (this.#how = error.code ?? "error"));
    this.#socket.on("end", () => (this.#how = "end"));
  }

  /** All that it says waits at the other side. */
  hasSaidAll(calls: Pick<RelayCalls, "unsent">): boolean {
    const { connecting, writableLength } = this.#socket;
    return !connecting && writableLength === 0 && calls.unsent(descriptorOf(this.#socket)) === 0;
  }

  get isOver(): boolean {
    return this.#how !== "silence";
  }

  /** A ServerHello is random; its alerts and its end are not. */
  received(): string {
    const answer = Buffer.concat(this.#parts).toString("hex");
    return `${answer.startsWith("160303") ? "hello" : answer} ${this.#how}`;
  }

  leave(): void {
    this.#socket.destroy();
  }
}

/** What each listener answers. */
export function answersTo(
  ports: readonly number[],
  bytes: Buffer,
  ends: boolean,
): Promise<readonly string[]> {
  return answersOf(ports.map((port) => new UnknownClient(port, bytes, ends)));
}

/** What clients get until all are closed; or until they have got nothing for a while, and agree. */
export async function answersOf(unknownClients: readonly UnknownClient[]): Promise<readonly string[]> {
  const received = () => unknownClients.map((unknownClient) => unknownClient.received());
  const agree = () => new Set(received()).size === 1;
  const startedMs = performance.now();
  while (!(agree() && unknownClients.every(({ isOver }) => isOver))) {
    const waitedMs = performance.now() - startedMs;
    if (waitedMs > 5_000 || (waitedMs > 300 && agree())) break;
    await delay(5);
  }
  for (const unknownClient of unknownClients) unknownClient.leave();
  return received();
}
