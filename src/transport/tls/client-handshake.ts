/** What both ways of dialling have in common: a handshake that is waited for. */
import type { Duplex } from "node:stream";
import { asDialError, DialError } from "#core/errors.ts";

export interface Opening {
  readonly stream: Duplex;
  /** Destroyed with it. */
  readonly below: Duplex;
  /** What the stream emits once the handshake is done. */
  readonly event: "secure" | "secureConnect";
  /** Asked then: why this server will not do; null: it will. */
  refusal(): Error | null;
}

/** Throws `DialError`; the stream is destroyed then. */
export function refuseIfAborted(stream: Duplex, serverName: string, signal: AbortSignal): void {
  if (!signal.aborted) return;
  stream.destroy();
  throw aborted(serverName);
}

/** Settles when the server is known to be the right one, or with a `DialError`; both streams are destroyed then. */
export function finishOpening(opening: Opening, serverName: string, signal: AbortSignal): Promise<void> {
  const { stream, below, event, refusal } = opening;
  return new Promise((resolve, reject) => {
    const settle = (failure: unknown): void => {
      signal.removeEventListener("abort", onAbort);
      stream.off("error", settle).off("close", onClose).off("end", onClose).off(event, onSecure);
      if (failure === null) return resolve();
      stream.destroy();
      below.destroy();
      reject(asDialError(failure, `TLS to ${serverName}`));
    };
    const onAbort = (): void => settle(aborted(serverName));
    const onClose = (): void => settle(new Error("the server closed the connection during the handshake"));
    const onSecure = (): void => {
      try {
        settle(refusal());
      } catch (error) {
        settle(error); // the peer's certificate cannot be parsed
      }
    };
    signal.addEventListener("abort", onAbort, { once: true });
    // Stays for good: a second fault, or one before the caller's own listener, must not end the process.
    stream.on("error", () => {});
    stream.on("error", settle).on("close", onClose).on("end", onClose).on(event, onSecure);
  });
}

function aborted(serverName: string): DialError {
  return new DialError("aborted", `TLS to ${serverName}: aborted`);
}
