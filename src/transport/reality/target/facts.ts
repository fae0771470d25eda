/** What can be learnt of a site that may become dest of a REALITY server, by visiting it as a browser. */
import type { Duplex } from "node:stream";
import { asError, messageOf } from "#core/errors.ts";
import type { Trust } from "#core/trust.ts";
import { openUrlStream } from "#net/dial/url-stream.ts";
import { certificateRecord } from "#transport/reality/server/dest-flight.ts";
import { type DestHandshake, shakeHandsWithDest } from "#transport/reality/server/dest-handshake.ts";
import { OwnCertificate } from "#transport/reality/server/own-certificate.ts";
import { CHROME_120, CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import { EXTENSION } from "#transport/tls13/extensions.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { decodeServerHello, readServerShare } from "#transport/tls13/hello-messages.ts";
import { GROUP } from "#transport/tls13/key-exchange.ts";

/** Records behind the handshake come at once, or are no answer to it. */
const LISTEN_MS = 500;
const MAX_HEAD_BYTES = 64 * 1024;
const SEED_BYTES = 32;

export interface Page {
  readonly status: number;
  /** Where it sends its visitors, as an absolute address; null: it sends them nowhere. */
  readonly location: string | null;
}

export interface Handshakes {
  /** What was agreed on; null: nothing. */
  readonly alpn: string | null;
  /** The group that a present browser gets. */
  readonly group: "X25519" | "X25519MLKEM768";
  /** A browser of the time before ML-KEM gets X25519. */
  readonly takesX25519: boolean;
  /** Of the record with the certificates. */
  readonly certificateBytes: number;
  readonly fitsCertificate: boolean;
  /** With a signature of ML-DSA-65. */
  readonly fitsMldsa65: boolean;
  /** Of records behind the handshake, in bytes. */
  readonly later: readonly number[];
}

export interface TargetFacts {
  /** The least of three connections, in ms. */
  readonly roundTripMs: number;
  /** From the first byte of a hello to the last one of the flight, in ms. */
  readonly handshakeMs: number;
  /** Or why no server of ours could imitate it. */
  readonly handshakes: Handshakes | string;
  /** Or why a browser would refuse the site. */
  readonly page: Page | string;
}

export interface TargetEnv {
  /** One connection. */
  readonly dial: (signal: AbortSignal) => Promise<Duplex>;
  readonly serverName: string;
  readonly trust: Trust;
  readonly signal: AbortSignal;
}

/** Rejects where the site cannot be reached. */
export async function learnOfTarget(env: TargetEnv): Promise<TargetFacts> {
  const dialled = new Dialled(env.dial);
  const first = await shake(env, dialled, CHROME_133);
  const before = await shake(env, dialled, CHROME_120);
  const page = await readPage(env, dialled).catch(messageOf);
  return { roundTripMs: dialled.leastMs, handshakeMs: first.ms, handshakes: describe(first, before), page };
}

/** Notes how long each connection takes. */
class Dialled {
  leastMs = Infinity;
  readonly #dial: TargetEnv["dial"];

  constructor(dial: TargetEnv["dial"]) {
    this.#dial = dial;
  }

  async open(signal: AbortSignal): Promise<Duplex> {
    const startedMs = performance.now();
    const stream = await this.#dial(signal);
    this.leastMs = Math.min(this.leastMs, performance.now() - startedMs);
    return stream;
  }
}

interface Attempt {
  readonly outcome: DestHandshake | Error;
  readonly ms: number;
}

async function shake(
  { serverName, signal }: TargetEnv,
  dialled: Dialled,
  template: HelloTemplate,
): Promise<Attempt> {
  const dest = await dialled.open(signal);
  const startedMs = performance.now();
  try {
    const asked = { template, serverName, protocols: null, listenMs: LISTEN_MS, signal };
    const outcome = await shakeHandsWithDest(dest, asked);
    return { outcome, ms: outcome.doneAtMs - startedMs };
  } catch (error) {
    if (signal.aborted) throw error;
    return { outcome: asError(error), ms: performance.now() - startedMs };
  }
}

function describe({ outcome }: Attempt, { outcome: before }: Attempt): Handshakes | string {
  if (outcome instanceof Error) return `it finishes no handshake of TLS 1.3: ${outcome.message}`;
  const group = groupOf(outcome);
  if (outcome.flight === null || group === null)
    return "it does not choose X25519 or X25519MLKEM768 at once, or its records are of no known shape";
  const certificate = (seed: Buffer | null) => {
    const { flight } = outcome;
    return flight === null ? null : certificateRecord(flight, new OwnCertificate(seed).bytes);
  };
  const [plain, signed] = [certificate(null), certificate(Buffer.alloc(SEED_BYTES))];
  return {
    alpn: outcome.alpn,
    group,
    takesX25519: !(before instanceof Error) && groupOf(before) === "X25519",
    certificateBytes: plain?.bytes ?? 0,
    fitsCertificate: plain !== null && plain.bytes >= plain.leastBytes,
    fitsMldsa65: signed !== null && signed.bytes >= signed.leastBytes,
    later: outcome.later,
  };
}

function groupOf({ flight }: DestHandshake): Handshakes["group"] | null {
  const share =
    flight && decodeServerHello(flight.serverHello.subarray(4)).extensions.get(EXTENSION.keyShare);
  if (share === undefined || share === null) return null;
  const { group } = readServerShare(share);
  if (group === GROUP.x25519) return "X25519";
  return group === GROUP.x25519MlKem768 ? "X25519MLKEM768" : null;
}

/** The head of its first page, by a connection whose certificate is verified. */
async function readPage({ serverName, trust, signal }: TargetEnv, dialled: Dialled): Promise<Page> {
  const url = new URL(`https://${serverName.includes(":") ? `[${serverName}]` : serverName}/`);
  const dialer = {
    connect: () => dialled.open(signal),
    associate: () => Promise.reject(new Error("TLS needs a stream")),
  };
  const stream = await openUrlStream(url, { dialer, trust }, signal);
  try {
    stream.write(
      `GET / HTTP/1.1\r\nhost: ${url.host}\r\nuser-agent: Mozilla/5.0\r\naccept: */*\r\nconnection: close\r\n\r\n`,
    );
    return parsePage(await readHead(stream), url);
  } finally {
    stream.destroy();
  }
}

async function readHead(stream: Duplex): Promise<string> {
  let head = "";
  for await (const bytes of stream) {
    head += String(bytes);
    if (head.includes("\r\n\r\n") || head.length > MAX_HEAD_BYTES) break;
  }
  return head.slice(0, head.indexOf("\r\n\r\n") + 1 || undefined);
}

/** Throws where it is no head of an answer. */
function parsePage(head: string, asked: URL): Page {
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1];
  if (status === undefined) throw new Error("its answer is not HTTP");
  const location = /^location:[ \t]*(\S+)/im.exec(head)?.[1];
  return { status: Number(status), location: (location && URL.parse(location, asked)?.href) || null };
}
