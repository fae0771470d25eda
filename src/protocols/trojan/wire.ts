/**
 * Trojan. Request: KEY(56, lower-case hex of SHA-224(password)) CRLF CMD(1) SOCKS address CRLF payload; no answer.
 * Packet, both ways after command 3: SOCKS address, LEN(2, big endian) CRLF DATA.
 */
import { createHash } from "node:crypto";
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { decodeSocksAddress, encodeSocksAddress, MAX_SOCKS_ADDRESS } from "#net/address/socks-address.ts";
import type { DatagramFraming } from "#protocols/udp-over-tcp/flow.ts";

export const KEY_BYTES = 56;
export const COMMAND_CONNECT = 1;
export const COMMAND_UDP = 3;
const CR = 13;
const LF = 10;
const CRLF = Buffer.from([CR, LF]);
export const MOST_REQUEST_BYTES = KEY_BYTES + 2 * CRLF.length + 1 + MAX_SOCKS_ADDRESS;
/** What other peers can take in one packet; larger ones are dropped. */
const MAX_SENT_BYTES = 8192;

export interface TrojanRequest {
  readonly command: number;
  readonly destination: Destination;
}

/** The wire form of a password. */
export function keyOf(password: string): string {
  return createHash("sha224").update(password).digest("hex");
}

export function encodeRequest(key: string, { command, destination }: TrojanRequest): Buffer {
  const address = encodeSocksAddress(destination);
  return Buffer.concat([Buffer.from(key, "latin1"), CRLF, Buffer.from([command]), address, CRLF]);
}

/** What follows the key. Null: more is needed. Throws `ProtocolError`. */
export function decodeRequest(bytes: Buffer): { value: TrojanRequest; size: number } | null {
  const start = KEY_BYTES + CRLF.length;
  expectCrlf(bytes, KEY_BYTES);
  const command = bytes[start];
  if (command === undefined) return null;
  if (command !== COMMAND_CONNECT && command !== COMMAND_UDP)
    throw new ProtocolError(`command ${command}, expected 1 or 3`);
  const address = decodeSocksAddress(bytes, start + 1);
  if (address === null) return null;
  expectCrlf(bytes, address.next);
  const size = address.next + CRLF.length;
  return bytes.length < size ? null : { value: { command, destination: address.destination }, size };
}

function expectCrlf(bytes: Uint8Array, at: number): void {
  if ((bytes[at] ?? CR) !== CR || (bytes[at + 1] ?? LF) !== LF)
    throw new ProtocolError("no line end where one belongs");
}

export function packetFraming(role: "client" | "server"): DatagramFraming {
  return {
    encode({ payload, destination }) {
      if (payload.length > MAX_SENT_BYTES) throw new DialError("unsupported", "datagram size");
      const length = Buffer.allocUnsafe(2);
      length.writeUInt16BE(payload.length);
      return Buffer.concat([
        encodeSocksAddress(destination, role === "server" ? "ip" : "host"),
        length,
        CRLF,
        payload,
      ]);
    },
    take(arrived) {
      const found = peekAddress(arrived);
      if (found === null) return null;
      const head = arrived.peek(found.next + 4);
      if (head === null) return null;
      expectCrlf(head, found.next + 2);
      const size = head.readUInt16BE(found.next);
      if (arrived.length < head.length + size) return null;
      arrived.skip(head.length);
      return { payload: arrived.takeUpTo(size), destination: found.destination };
    },
  };
}

function peekAddress(arrived: ByteQueue) {
  const bytes = arrived.peekUpTo(MAX_SOCKS_ADDRESS);
  return decodeSocksAddress(bytes);
}
