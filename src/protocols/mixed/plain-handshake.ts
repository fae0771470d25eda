/**
 * The request in the first bytes of a client, as far as a worker may serve it: plain requests to connect, of clients that
 * need no credentials. The parsers are those of the listeners on the main thread, which get everything else.
 */
import { ProtocolError } from "#core/errors.ts";
import type { PlainHandshake } from "#core/accepted.ts";
import { parseConnectTarget } from "#protocols/http/authority.ts";
import { decodeConnect } from "#protocols/http/head.ts";
import * as socks from "#protocols/socks/wire.ts";
import { byteAt } from "#lib/at.ts";

export interface PlainRequest {
  /** Where the request begins, behind a SOCKS5 greeting. */
  readonly from: number;
  /** Length of the whole handshake; the bytes behind it belong to the tunnel. */
  readonly size: number;
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

export const beginsWithGreeting = (bytes: Uint8Array): boolean => bytes[0] === 5;

/** How long the SOCKS5 greeting is that has been answered (RFC 1928 §3: VER NMETHODS METHODS). */
export function greetingBytes(bytes: Uint8Array): number {
  return 2 + byteAt(bytes, 1);
}

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
  return { greets: false, request: { from: 0, size: request.size } };
}

function readSocks5(bytes: Buffer): PlainStep {
  const greeting = socks.decodeGreeting(bytes);
  if (greeting === null) return "wait";
  if (!greeting.value.includes(socks.NO_AUTHENTICATION)) return "other";
  const from = greeting.size;
  const request = socks.decodeRequest(bytes.subarray(from));
  if (request === null) return { greets: true, request: null };
  const { command, destination } = request.value;
  if (command !== socks.CONNECT || destination === null) return "other";
  return { greets: true, request: { from, size: from + request.size } };
}

function readConnect(bytes: Buffer): PlainStep {
  const head = decodeConnect(bytes, 0);
  if (head === null) return "wait";
  if (head.value === null || parseConnectTarget(head.value.target) === null) return "other";
  return { greets: false, request: { from: 0, size: head.size } };
}
