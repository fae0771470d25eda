import type { Duplex } from "node:stream";
import { ProtocolError, asError } from "#core/errors.ts";
import { putBack } from "#core/stream.ts";
import { ByteQueue } from "#lib/byte-queue.ts";

/** Looks at what has arrived; takes its bytes and answers, or answers null and waits. Throws `ProtocolError`. */
export type HandshakeStep<T> = (arrived: ByteQueue) => T | null;

/**
 * Feeds `step` until it answers; bytes it left are put back and the stream is paused. Rejects with what `step` threw,
 * with `ProtocolError` where the stream ends or the deadline passes, and with the stream's error. The stream itself is
 * left alone: its owner decides how a failed handshake looks from outside. It must have an 'error' handler already.
 * `arrived`: what `step` has seen already.
 */
export function readHandshake<T>(
  stream: Duplex,
  step: HandshakeStep<T>,
  deadlineMs: number,
  arrived = new ByteQueue(),
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(new ProtocolError("the handshake took too long")), deadlineMs);
    function settle(): void {
      clearTimeout(timer);
      stream.off("data", onData).off("end", onEnd).off("error", fail).off("close", onEnd);
      stream.pause();
    }
    function fail(error: unknown): void {
      settle();
      reject(asError(error));
    }
    function onEnd(): void {
      fail(new ProtocolError("the connection ended within the handshake"));
    }
    function onData(bytes: Buffer): void {
      arrived.push(bytes);
      let answer: T | null;
      try {
        answer = step(arrived);
      } catch (error) {
        fail(error);
        return;
      }
      if (answer === null) return;
      settle();
      if (arrived.length > 0) putBack(stream, arrived.takeAll());
      resolve(answer);
    }
    stream.on("data", onData).on("end", onEnd).on("error", fail).on("close", onEnd);
    if (stream.readableEnded || stream.destroyed) onEnd();
    else stream.resume();
  });
}

/**
 * Lets a connection run dry: reads and throws away, answers nothing, closes when the peer does or after `limitMs`.
 * For servers that must not show at which byte they lost interest.
 */
export function discardInput(stream: Duplex, limitMs: number): void {
  if (stream.destroyed) return;
  const timer = setTimeout(() => stream.destroy(), limitMs);
  timer.unref();
  stream.on("error", () => stream.destroy());
  stream.on("end", () => stream.destroy());
  stream.on("close", () => clearTimeout(timer));
  stream.on("data", ignore);
  if (stream.readableEnded) stream.destroy();
  else stream.resume();
}

function ignore(): void {}
