/** What dest sends to a client whose handshake is done, before the client says anything: tickets and settings of HTTP/2. */
import type { Duplex } from "node:stream";
import { asError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { ClientConnection } from "#transport/tls13/client-connection.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import { acceptAnybody } from "#transport/tls13/leaf-certificate.ts";
import { HEADER_BYTES } from "#transport/tls13/records.ts";

/** Dest may have changed by then. */
const VALID_MS = 6 * 3600_000;
/** A dest that does not answer is asked again. */
const RETRY_MS = 60_000;
const HANDSHAKE_MS = 10_000;
/** Records that come later are not answers to the handshake. */
const LISTEN_MS = 5000;
const MAX_RECORDS = 16;
const MAX_BYTES = 256 * 1024;

interface Known {
  lengths: readonly number[];
  askAgainMs: number;
}

/** Asks dest in advance, once for each name and kind of ALPN, and again when the answer is old. It is never waited for. */
export class DestProbe implements Disposable {
  readonly #dial: (signal: AbortSignal) => Promise<Duplex>;
  readonly #known = new Map<string, Known>();
  readonly #end = new AbortController();

  constructor(dial: (signal: AbortSignal) => Promise<Duplex>) {
    this.#dial = dial;
  }

  /** Of records with their headers, as far as they are known now. `serverName`: one of the listener's, so there are few. */
  lengths(serverName: string, protocols: readonly string[]): readonly number[] {
    const alpn = alpnOf(protocols);
    const key = `${serverName} ${alpn}`;
    let known = this.#known.get(key);
    if (known === undefined) this.#known.set(key, (known = { lengths: [], askAgainMs: 0 }));
    const nowMs = performance.now();
    if (nowMs >= known.askAgainMs && !this.#end.signal.aborted) {
      known.askAgainMs = nowMs + VALID_MS;
      void this.#ask(known, serverName, alpn);
    }
    return known.lengths;
  }

  async #ask(known: Known, serverName: string, alpn: string | null): Promise<void> {
    try {
      const dest = await this.#dial(AbortSignal.any([this.#end.signal, AbortSignal.timeout(HANDSHAKE_MS)]));
      known.lengths = await recordsBehindHandshake(dest, serverName, alpn, this.#end.signal);
    } catch {
      known.askAgainMs = performance.now() + RETRY_MS; // what was known before still holds
    }
  }

  [Symbol.dispose](): void {
    this.#end.abort(new Error("the listener was closed"));
  }
}

/** Null: no ALPN at all. */
function alpnOf(protocols: readonly string[]): "h2" | "http/1.1" | null {
  if (protocols[0] === "h2") return "h2";
  return protocols.length === 0 ? null : "http/1.1";
}

function recordsBehindHandshake(
  dest: Duplex,
  serverName: string,
  alpn: string | null,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const protocols = alpn === "h2" ? null : alpn === null ? [] : [alpn];
  const hello = buildHello(CHROME_133, { serverName, protocols });
  // Only lengths are taken from dest, so whose certificate it shows is not asked.
  const connection = new ClientConnection({ hello, identity: null, judge: acceptAnybody });
  const arrived = new ByteQueue();
  const lengths: number[] = [];
  let bytes = 0;
  return new Promise((resolve, reject) => {
    const flush = (): void => {
      const output = connection.takeOutput();
      if (output !== null) dest.write(output);
    };
    const finish = (error: Error | null): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      dest.destroy();
      if (connection.isSecure) resolve(lengths);
      else reject(error ?? new Error("dest ended the handshake"));
      connection[Symbol.dispose]();
    };
    const onAbort = (): void => finish(null);
    let timer = setTimeout(onAbort, HANDSHAKE_MS);
    const take = (record: Buffer): void => {
      if (connection.isSecure) return void lengths.push(record.length);
      connection.feed(record);
      connection.read();
      if (!connection.isSecure) return;
      clearTimeout(timer);
      timer = setTimeout(onAbort, LISTEN_MS);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    dest.on("error", finish).once("end", onAbort).once("close", onAbort);
    dest.on("data", (chunk: Buffer) => {
      arrived.push(chunk);
      bytes += chunk.length;
      try {
        for (let record = takeWhole(arrived); record !== null; record = takeWhole(arrived)) take(record);
        flush();
      } catch (error) {
        return finish(asError(error));
      }
      if (lengths.length >= MAX_RECORDS || bytes > MAX_BYTES) finish(null);
    });
    connection.start();
    flush();
  });
}

/** With its header; null: not there yet. */
function takeWhole(arrived: ByteQueue): Buffer | null {
  const header = arrived.peek(HEADER_BYTES);
  return header === null ? null : arrived.take(HEADER_BYTES + header.readUInt16BE(3));
}
