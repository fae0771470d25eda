/** One question to a time server: SNTP version 4 (RFC 5905 §14). */
import { randomBytes } from "node:crypto";
import { ProtocolError, asError } from "#core/errors.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { byteAt } from "#lib/at.ts";

// LEAP(2 bits) VERSION(3) MODE(3) STRATUM(1) POLL(1) PRECISION(1) DELAY(4) DISPERSION(4) REFERENCE(4)
// REFERENCE-TIME(8) ORIGIN-TIME(8) RECEIVE-TIME(8) TRANSMIT-TIME(8)
const PACKET_BYTES = 48;
const ORIGIN_AT = 24;
const RECEIVE_AT = 32;
const TRANSMIT_AT = 40;
const CLIENT_VERSION_4 = (4 << 3) | 3;
const MODE_SERVER = 4;
const UNSYNCHRONISED = 3;
const MAX_STRATUM = 15;

/** Seconds from 1900 to 1970. */
const EPOCH_SECONDS = 2_208_988_800;
/** The second era began in February 2036: numbers with a zero first bit are of it (RFC 4330 §3). */
const ERA_SECONDS = 2 ** 32;

/**
 * How far the server's clock is ahead of the system's, in milliseconds. The question carries random bytes instead of
 * the time, so a host that did not see it cannot forge an answer. Rejects with `ProtocolError`, or the reason of
 * `signal`.
 */
export async function askOffset(
  flow: DatagramFlow,
  server: Destination,
  signal: AbortSignal,
): Promise<number> {
  const question = Buffer.alloc(PACKET_BYTES);
  question[0] = CLIENT_VERSION_4;
  randomBytes(8).copy(question, TRANSMIT_AT);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const onAbort = (): void => reject(asError(signal.reason));
  signal.addEventListener("abort", onAbort);
  try {
    signal.throwIfAborted();
    const sentAtMs = Date.now();
    const sentAt = performance.now();
    flow.receive(({ payload }) => {
      const roundTripMs = performance.now() - sentAt; // not by the clock that is in question
      try {
        const times = readAnswer(Buffer.from(payload.buffer, payload.byteOffset, payload.length), question);
        if (times !== null) resolve(offsetOf(times, sentAtMs, roundTripMs));
      } catch (error) {
        reject(asError(error));
      }
    });
    flow.send({ payload: question, destination: server });
    void flow.closed.then(() => reject(new ProtocolError("the path to the time server has closed")));
    return await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** When the question came and the answer left, by the server's clock, in Unix milliseconds. */
export interface ServerTimes {
  readonly receivedAtMs: number;
  readonly answeredAtMs: number;
}

/** Null: no answer to this question. Throws `ProtocolError` where the server has no time to give. */
export function readAnswer(answer: Buffer, question: Buffer): ServerTimes | null {
  if (answer.length < PACKET_BYTES || (byteAt(answer, 0) & 7) !== MODE_SERVER) return null;
  if (answer.compare(question, TRANSMIT_AT, PACKET_BYTES, ORIGIN_AT, RECEIVE_AT) !== 0) return null;
  const stratum = byteAt(answer, 1);
  if (stratum === 0) {
    const code = answer.toString("latin1", 12, 16).replace(/[^A-Z0-9]/g, "");
    throw new ProtocolError(`the time server refuses (${code})`); // RFC 5905 §7.4, "kiss-o'-death"
  }
  // RFC 4330 §5: a time of zero is none.
  const isSilent = answer.readBigUInt64BE(RECEIVE_AT) === 0n || answer.readBigUInt64BE(TRANSMIT_AT) === 0n;
  if (isSilent || stratum > MAX_STRATUM || byteAt(answer, 0) >>> 6 === UNSYNCHRONISED)
    throw new ProtocolError("the time server does not know the time itself");
  return { receivedAtMs: timeAt(answer, RECEIVE_AT), answeredAtMs: timeAt(answer, TRANSMIT_AT) };
}

function offsetOf(
  { receivedAtMs, answeredAtMs }: ServerTimes,
  sentAtMs: number,
  roundTripMs: number,
): number {
  return (receivedAtMs - sentAtMs + (answeredAtMs - sentAtMs - roundTripMs)) / 2;
}

function timeAt(packet: Buffer, at: number): number {
  const seconds = packet.readUInt32BE(at);
  const era = seconds < ERA_SECONDS / 2 ? ERA_SECONDS : 0;
  return (seconds + era - EPOCH_SECONDS) * 1000 + (packet.readUInt32BE(at + 4) / ERA_SECONDS) * 1000;
}
