/**
 * Fatal alerts (RFC 8446 §6.2) of checks that are made when the handshake of the library is done: it has no public function
 * for one. See docs/adr/0020.
 */
import type * as Ffi from "node:ffi";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = {
  ssl3_send_alert: { arguments: ["pointer", "i32", "i32"], return: "i32" },
  ERR_clear_error: { arguments: [], return: "void" },
} as const;

/** The function is internal: of this major version its signature is known, and that it takes the public object. */
const KNOWN_MAJOR = "3.";
const SSL3_AL_FATAL = 2;

export const BAD_CERTIFICATE = 42;
/** In TLS 1.2 the library says handshake_failure for it. */
export const CERTIFICATE_REQUIRED = 116;

/**
 * Sends the alert as far as the socket takes it, and makes the session unfit for resumption. The connection is to be closed
 * then, without close_notify. Does nothing where the library of this runtime is another one.
 */
export type SendAlert = (ssl: bigint, description: number) => void;

export function openAlerts(): SendAlert {
  const ffi = openLinuxFfi();
  const isKnown = process.versions.openssl?.startsWith(KNOWN_MAJOR) === true;
  const functions = ffi === null || !isKnown ? null : load(ffi);
  if (functions === null) return () => {};
  return (ssl, description) => {
    functions.ssl3_send_alert(ssl, SSL3_AL_FATAL, description);
    functions.ERR_clear_error();
  };
}

function load(ffi: typeof Ffi) {
  try {
    return ffi.dlopen(null, SIGNATURES).functions;
  } catch {
    return null; // a runtime linked without these names
  }
}
