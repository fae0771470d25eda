/** A handshake of ours with dest, as a browser has it: what its visitors see, in lengths of records. */
import type { Duplex } from "node:stream";
import { asError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { ClientConnection } from "#transport/tls13/client-connection.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { acceptAnybody } from "#transport/tls13/leaf-certificate.ts";
import { HEADER_BYTES } from "#transport/tls13/records.ts";
import { type DestFlight, MAX_FLIGHT_BYTES, readDestFlight } from "./dest-flight.ts";

const HANDSHAKE_MS = 10_000;
/** Go's TLS gives up at the seventeenth record in a row that says nothing; some come before the client has finished. */
const MAX_LATER_RECORDS = 12;
const MAX_BYTES = 256 * 1024;

export interface DestHandshakeOptions {
  readonly template: HelloTemplate;
  /** Empty: none is asked for. */
  readonly serverName: string;
  /** Null: the browser's; empty: no ALPN. */
  readonly protocols: readonly string[] | null;
  /** For how long records behind the handshake are waited for. */
  readonly listenMs: number;
  readonly signal: AbortSignal;
}

export interface DestHandshake {
  readonly alpn: string | null;
  /** Null: it cannot be imitated. */
  readonly flight: DestFlight | null;
  /** Of records behind the handshake, with their headers: tickets and settings of HTTP/2. */
  readonly later: readonly number[];
  /** When the handshake was done, by `performance.now()`. */
  readonly doneAtMs: number;
}

/** Owns the stream. Rejects where the handshake fails. Only lengths are taken, so whose certificate is shown is not asked. */
export async function shakeHandsWithDest(
  dest: Duplex,
  { template, serverName, protocols, listenMs, signal }: DestHandshakeOptions,
): Promise<DestHandshake> {
  const hello = buildHello(template, { serverName, protocols });
  using connection = new ClientConnection({ hello, identity: null, judge: acceptAnybody });
  const seen = new SeenRecords(connection);
  const { promise: over, resolve: finish, reject: fail } = Promise.withResolvers<void>();
  const onAbort = (): void => finish();
  let timer = setTimeout(finish, HANDSHAKE_MS);
  let doneAtMs = 0;
  const flush = (): void => {
    const output = connection.takeOutput();
    if (output !== null) dest.write(output);
  };
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  dest.on("error", fail).once("end", onAbort).once("close", onAbort);
  dest.on("data", (bytes: Buffer) => {
    const wasSecure = connection.isSecure;
    try {
      seen.take(bytes);
    } catch (error) {
      return fail(asError(error));
    }
    flush();
    if (!wasSecure && connection.isSecure) {
      doneAtMs = performance.now();
      clearTimeout(timer);
      timer = setTimeout(finish, listenMs);
    }
    if (seen.isFull) finish();
  });
  connection.start();
  flush();
  try {
    await over;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    dest.on("error", () => {}).destroy();
  }
  if (!connection.isSecure) throw new Error("it did not finish a handshake of TLS 1.3");
  return { alpn: connection.agreement?.alpn ?? null, flight: seen.flight, later: seen.later, doneAtMs };
}

class SeenRecords {
  readonly later: number[] = [];
  readonly #connection: ClientConnection;
  readonly #arrived = new ByteQueue();
  #first: Buffer = Buffer.alloc(0);
  #bytes = 0;

  constructor(connection: ClientConnection) {
    this.#connection = connection;
  }

  /** Throws what the handshake throws. */
  take(bytes: Buffer): void {
    this.#bytes += bytes.length;
    if (this.#first.length < MAX_FLIGHT_BYTES) this.#first = Buffer.concat([this.#first, bytes]);
    this.#arrived.push(bytes);
    for (let record = takeWhole(this.#arrived); record !== null; record = takeWhole(this.#arrived)) {
      if (this.#connection.isSecure) this.later.push(record.length);
      else {
        this.#connection.feed(record);
        this.#connection.read();
      }
    }
  }

  get isFull(): boolean {
    return this.later.length >= MAX_LATER_RECORDS || this.#bytes > MAX_BYTES;
  }

  get flight(): DestFlight | null {
    const flight = readDestFlight(this.#first);
    return typeof flight === "string" ? null : flight;
  }
}

/** With its header; null: not there yet. */
function takeWhole(arrived: ByteQueue): Buffer | null {
  const header = arrived.peek(HEADER_BYTES);
  return header === null ? null : arrived.take(HEADER_BYTES + header.readUInt16BE(3));
}
