/** The end of a TLS handshake on the accepting side, whichever library does it. */
import type { Duplex } from "node:stream";
import { AuthError, ProtocolError } from "#core/errors.ts";
import type { ClientAuthType, TlsAccepted } from "#core/tls.ts";
import { VERIFYING } from "./server-options.ts";

/** A peer that has not finished its handshake by then is closed. */
const HANDSHAKE_TIMEOUT_MS = 30_000;

const REQUIRING: ReadonlySet<string> = new Set(["require-any", "require-and-verify"]);

/** A handshake that is under way: `stream` emits `secure` when it is done, where it is not yet. */
export interface Handshake {
  readonly isDone: boolean;
  readonly stream: Duplex;
  /** What to destroy with it. */
  readonly below: Duplex;
  /** Asked for once it is done. */
  facts(): HandshakeFacts;
  /** Sends the alert of a client certificate that is refused, or was not `given`. Absent: the library cannot. */
  sayRefused?(given: boolean): void;
}

export interface HandshakeFacts extends Omit<TlsAccepted, "stream"> {
  /** Did the client show a certificate, and why does the library refuse it? */
  readonly client: { readonly given: boolean; readonly refusal: string | null };
}

export function finishHandshake(
  { stream, below, isDone, facts, sayRefused }: Handshake,
  clientAuthType: ClientAuthType,
  signal: AbortSignal | undefined,
): Promise<TlsAccepted> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => fail(new ProtocolError("no TLS handshake within 30 s")),
      HANDSHAKE_TIMEOUT_MS,
    );
    const stop = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      stream.off("error", onError).off("close", onClose).off("end", onClose).off("secure", onSecure);
    };
    const fail = (failure: Error) => {
      stop();
      stream.destroy();
      below.destroy();
      reject(failure);
    };
    const onError = (cause: Error) => fail(new ProtocolError(`TLS handshake: ${cause.message}`, { cause }));
    const onClose = () =>
      fail(new ProtocolError("the client closed the connection during the TLS handshake"));
    const onAbort = () => fail(new ProtocolError("aborted during the TLS handshake"));
    const onSecure = () => {
      const { client, ...accepted } = facts();
      const refused = clientRefusal(client, clientAuthType);
      if (refused !== null) {
        sayRefused?.(client.given);
        return fail(refused);
      }
      stop();
      resolve({ ...accepted, stream });
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    // Stays for good: a second fault, or one before the caller's own listener, must not end the process.
    stream.on("error", () => {});
    stream.on("error", onError).on("close", onClose).on("end", onClose).on("secure", onSecure);
    if (signal?.aborted === true) onAbort();
    else if (isDone) onSecure();
  });
}

/** Why the listener does not take this client; null: it does. */
export function clientRefusal(
  { given, refusal: why }: HandshakeFacts["client"],
  type: ClientAuthType,
): Error | null {
  if (type === "" || type === "request") return null;
  if (!given) return REQUIRING.has(type) ? new AuthError("the client showed no certificate") : null;
  if (!VERIFYING.has(type) || why === null) return null;
  return new AuthError(`the client's certificate is refused: ${why}`);
}
