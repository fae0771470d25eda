/** How long an outbound takes to fetch a page: the delay test of dashboards and of groups. */
import type { Duplex } from "node:stream";
import { asDialError, DialError } from "#core/errors.ts";
import type { StatusRanges } from "#core/group.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Trust } from "#core/trust.ts";
import { openUrlStream } from "./url-stream.ts";

export interface ProbeOptions {
  /** http or https. */
  readonly url: string;
  /** From before the dial to the end of the answer's head. */
  readonly timeoutMs: number;
  /** Measure a second request on the warm connection (`unified-delay`): the handshakes of the way are left out. */
  readonly unified: boolean;
  readonly trust: Trust;
  readonly signal: AbortSignal;
}

export interface ProbeResult {
  /** Whole milliseconds, at least 1. */
  readonly delayMs: number;
  readonly status: number;
}

const MAX_HEAD_BYTES = 64 * 1024;

/** HEAD, redirects not followed; any HTTP status is an answer. Throws `DialError`; `timeout` where time ran out. */
export async function probe(dialer: Dialer, options: ProbeOptions): Promise<ProbeResult> {
  const url = parseProbeUrl(options.url);
  const timer = AbortSignal.timeout(Math.max(0, options.timeoutMs));
  const signal = AbortSignal.any([options.signal, timer]);
  let stream: Duplex | null = null;
  try {
    let startedMs = performance.now();
    stream = await openUrlStream(url, { dialer, trust: options.trust }, signal);
    let status = await head(stream, url, signal);
    if (options.unified) {
      startedMs = performance.now();
      // A server that closes after the first answer has been measured by it all the same.
      status = await head(stream, url, signal).catch((error: unknown) => {
        if (signal.aborted) throw error;
        return status;
      });
    }
    return { delayMs: Math.max(1, Math.round(performance.now() - startedMs)), status };
  } catch (error) {
    if (timer.aborted)
      throw new DialError("timeout", `no answer from ${url.host} in ${options.timeoutMs} ms`, {
        cause: error,
      });
    throw asDialError(error, `delay test of ${url.host}`);
  } finally {
    stream?.destroy();
  }
}

export function statusIn(status: number, expected: StatusRanges): boolean {
  return expected === null || expected.some(([from, to]) => status >= from && status <= to);
}

/** Throws `DialError("unsupported")`. */
function parseProbeUrl(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && (url.protocol === "http:" || url.protocol === "https:")) return url;
  throw new DialError("unsupported", `a delay test needs an http or https URL, got ${text}`);
}

/** Sends one request and reads the head of its answer; the status line is all that matters. */
async function head(stream: Duplex, url: URL, signal: AbortSignal): Promise<number> {
  let received = "";
  const onData = (chunk: Buffer): void => void (received += chunk.toString("latin1"));
  stream.on("data", onData);
  try {
    stream.write(`HEAD ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nAccept: */*\r\n\r\n`);
    await settle(stream, signal, (done) =>
      stream.on("data", () => {
        if (received.includes("\r\n\r\n") || received.length > MAX_HEAD_BYTES) done();
      }),
    );
  } finally {
    stream.removeAllListeners("data");
  }
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(received)?.[1];
  if (status === undefined)
    throw new DialError("failed", `${url.host} answered with something that is not HTTP`);
  return Number(status);
}

/** Waits for `done`, the stream's end, or the signal. */
function settle(stream: Duplex, signal: AbortSignal, start: (done: () => void) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onClose = (): void => reject(new DialError("failed", "the connection was closed before an answer"));
  const onAbort = (): void => reject(new DialError("aborted", "aborted"));
  if (signal.aborted) onAbort();
  if (stream.destroyed) onClose();
  signal.addEventListener("abort", onAbort, { once: true });
  stream.once("close", onClose);
  stream.once("end", onClose);
  start(resolve);
  return promise.finally(() => {
    signal.removeEventListener("abort", onAbort);
    stream.off("close", onClose);
    stream.off("end", onClose);
  });
}
