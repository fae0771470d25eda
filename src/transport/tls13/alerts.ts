/** Alerts of TLS 1.3 (RFC 8446 §6): two bytes, LEVEL(1) DESCRIPTION(1). */
import { ProtocolError } from "#core/errors.ts";

/** Descriptions by name (RFC 8446 §6, RFC 9849 for `ech_required`). */
export const ALERT = {
  close_notify: 0,
  unexpected_message: 10,
  bad_record_mac: 20,
  record_overflow: 22,
  handshake_failure: 40,
  bad_certificate: 42,
  unsupported_certificate: 43,
  certificate_revoked: 44,
  certificate_expired: 45,
  certificate_unknown: 46,
  illegal_parameter: 47,
  unknown_ca: 48,
  access_denied: 49,
  decode_error: 50,
  decrypt_error: 51,
  protocol_version: 70,
  insufficient_security: 71,
  internal_error: 80,
  inappropriate_fallback: 86,
  user_canceled: 90,
  missing_extension: 109,
  unsupported_extension: 110,
  unrecognized_name: 112,
  bad_certificate_status_response: 113,
  unknown_psk_identity: 115,
  certificate_required: 116,
  no_application_protocol: 120,
  ech_required: 121,
} as const;
export type AlertName = keyof typeof ALERT;

const NAMES = new Map<number, string>(Object.entries(ALERT).map(([name, code]) => [code, name]));

/** `handshake failure`, or the number where it has no name. */
function alertText(description: number): string {
  return NAMES.get(description)?.replaceAll("_", " ") ?? String(description);
}

/** The peer broke a rule: it is told so by `alert`, and the connection is over. */
export class TlsFault extends ProtocolError {
  readonly alert: AlertName;

  constructor(alert: AlertName, message: string, options?: ErrorOptions) {
    super(message, options);
    this.alert = alert;
  }
}

/** The peer ended the connection by an alert. */
export class PeerAlert extends ProtocolError {
  readonly description: number;

  constructor(description: number) {
    super(`the peer sent the alert ${alertText(description)}`);
    this.description = description;
  }
}

/** The server answered with a version before TLS 1.3, which only another TLS library here speaks. */
export class OlderVersion extends TlsFault {
  constructor() {
    super("protocol_version", "the server speaks no TLS 1.3");
  }
}

const WARNING = 1;
const FATAL = 2;

/** `close_notify` and `user_canceled` are warnings, all others end the connection (RFC 8446 §6). */
export function encodeAlert(name: AlertName): Buffer {
  const isWarning = name === "close_notify" || name === "user_canceled";
  return Buffer.of(isWarning ? WARNING : FATAL, ALERT[name]);
}

/** The description. Throws `TlsFault`; the level says nothing in TLS 1.3. */
export function decodeAlert(body: Buffer): number {
  if (body.length !== 2) throw new TlsFault("decode_error", `an alert of ${body.length} bytes`);
  return body.readUInt8(1);
}
