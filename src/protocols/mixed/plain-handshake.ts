/**
 * The request in the first bytes of a client, as far as a worker may serve it: plain requests to connect, of clients that
 * need no credentials. The parsers are those of the listeners on the main thread, which get everything else.
 */
import { ProtocolError } from "#core/errors.ts";
import type { PlainHandshake } from "#core/accepted.ts";
import type { Destination, Endpoint } from "#core/session.ts";
import { parseConnectTarget } from "#protocols/http/authority.ts";
import { decodeConnect } from "#protocols/http/head.ts";
import { tunnelSuccess } from "#protocols/http/tunnel-success.ts";
import { SOCKS4_SUCCESS, socks5Success } from "#protocols/socks/success.ts";
import * as socks from "#protocols/socks/wire.ts";

/** What a client asks for. */
export interface PlainWish {
  /** API spelling of what it speaks, as in `InboundInfo.type`. */
  readonly type: "Socks4" | "Socks5" | "HTTPS";
  readonly destination: Destination;
  /** What it is answered when it is connected; `local`: the listening side's own address. */
  readonly success: (local: Endpoint) => Uint8Array;
}

export interface PlainRequest {
  /** Where the request begins, behind a SOCKS5 greeting. */
  readonly from: number;
  /** Length of the whole handshake; the bytes behind it belong to the tunnel. */
  readonly size: number;
  /** Null: there is no request, the listener knows the destination. */
  readonly wish: PlainWish | null;
}

/** `wait`: more bytes are needed. `other`: not for a thread. */
export type PlainStep =
  | "wait"
  | "other"
  | {
      /** A SOCKS5 greeting that accepts no authentication; its request may be there, too. */
      readonly greets: boolean;
      readonly request: PlainRequest | null;
    };

/** `bytes`: all from the first one on. */
export function readPlain(handshake: PlainHandshake, bytes: Buffer): PlainStep {
  const first = bytes[0];
  if (first === undefined) return "wait";
  const isSocks = first === 4 || first === 5;
  if (isSocks ? handshake === "http" : handshake === "socks") return "other";
  try {
    return !isSocks ? readConnect(bytes) : first === 4 ? readSocks4(bytes) : readSocks5(bytes);
  } catch (error) {
    if (error instanceof ProtocolError) return "other"; // the listener's own parser refuses it with its reason
    throw error;
  }
}

function readSocks4(bytes: Buffer): PlainStep {
  const request = socks.decodeRequest4(bytes);
  if (request === null) return "wait";
  if (request.value.command !== socks.CONNECT) return "other";
  const { destination } = request.value;
  const wish: PlainWish = { type: "Socks4", destination, success: () => SOCKS4_SUCCESS };
  return { greets: false, request: { from: 0, size: request.size, wish } };
}

function readSocks5(bytes: Buffer): PlainStep {
  const greeting = socks.decodeGreeting(bytes);
  if (greeting === null) return "wait";
  if (!offersNoAuthentication(greeting.value)) return "other";
  const from = greeting.size;
  const request = socks.decodeRequestAt(bytes, from);
  if (request === null) return { greets: true, request: null };
  const { command, destination } = request.value;
  if (command !== socks.CONNECT || destination === null) return "other";
  const wish: PlainWish = { type: "Socks5", destination, success: socks5Success };
  return { greets: true, request: { from, size: from + request.size, wish } };
}

/** By hand: a look for one of a few bytes through the runtime takes longer than all else of a greeting. */
function offersNoAuthentication(methods: Uint8Array): boolean {
  for (let at = 0; at < methods.length; at++) if (methods[at] === socks.NO_AUTHENTICATION) return true;
  return false;
}

function readConnect(bytes: Buffer): PlainStep {
  const head = decodeConnect(bytes, 0);
  if (head === null) return "wait";
  const destination = head.value === null ? null : parseConnectTarget(head.value.target);
  if (head.value === null || destination === null) return "other";
  const { version } = head.value;
  const wish: PlainWish = { type: "HTTPS", destination, success: () => tunnelSuccess(version) };
  return { greets: false, request: { from: 0, size: head.size, wish } };
}
