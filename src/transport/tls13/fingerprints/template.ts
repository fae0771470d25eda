/** How a browser's ClientHello looks: facts of the wire as data. */

/** A number, or one that is drawn anew for each hello to keep servers tolerant (GREASE, RFC 8701). */
export type Value = number | "grease";

export type ExtensionTemplate =
  /** The first of a hello is empty, the last holds one zero byte. */
  | { readonly kind: "grease" }
  /** server_name; left out where the server is an address. */
  | { readonly kind: "name" }
  /** ALPN; the browser's own protocols unless the node has others. */
  | { readonly kind: "protocols"; readonly names: readonly string[] }
  /** Application settings for `h2`; left out where that is not offered. */
  | { readonly kind: "settings"; readonly type: number }
  /** Key shares by group; a GREASE share is one zero byte. */
  | { readonly kind: "shares"; readonly groups: readonly Value[] }
  /** Numbers of two bytes behind a length of so many bytes. */
  | {
      readonly kind: "list";
      readonly type: number;
      readonly lengthBytes: 1 | 2;
      readonly values: readonly Value[];
    }
  /** Invented Encrypted ClientHello (RFC 9849 §6.2): one of these AEADs, one of these lengths of the payload. */
  | { readonly kind: "ech"; readonly aeads: readonly number[]; readonly payloads: readonly number[] }
  /** Fills a message of 256 to 511 bytes up to 512 (RFC 7685). */
  | { readonly kind: "padding" }
  | { readonly kind: "fixed"; readonly type: number; readonly body: string };

export interface HelloTemplate {
  /** For people: browser and version. */
  readonly name: string;
  /** Year and month from which on the browser spoke so. */
  readonly since: string;
  readonly suites: readonly Value[];
  readonly extensions: readonly ExtensionTemplate[];
  /** All but the GREASE extensions and the padding change places in each hello. */
  readonly isShuffled: boolean;
}

export const GREASE = { kind: "grease" } as const;
export const NAME = { kind: "name" } as const;
export const PADDING = { kind: "padding" } as const;
export const BROWSER_PROTOCOLS = { kind: "protocols", names: ["h2", "http/1.1"] } as const;
/** extended_master_secret, renegotiation_info, ec_point_formats, session_ticket, status_request, SCT, psk modes. */
export const MASTER_SECRET = fixed(23);
export const RENEGOTIATION = fixed(65281, "00");
export const POINT_FORMATS = fixed(11, "0100");
export const SESSION_TICKET = fixed(35);
export const STATUS_REQUEST = fixed(5, "0100000000");
export const CERTIFICATE_TIMESTAMP = fixed(18);
export const KEY_EXCHANGE_MODES = fixed(45, "0101");

/** `body` in hex. */
export function fixed(type: number, body = ""): ExtensionTemplate {
  return { kind: "fixed", type, body };
}

export function list8(type: number, ...values: readonly Value[]): ExtensionTemplate {
  return { kind: "list", type, lengthBytes: 1, values };
}

export function list16(type: number, ...values: readonly Value[]): ExtensionTemplate {
  return { kind: "list", type, lengthBytes: 2, values };
}

export function shares(...groups: readonly Value[]): ExtensionTemplate {
  return { kind: "shares", groups };
}
