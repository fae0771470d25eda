/**
 * VLESS headers. Request: VER(1)=0 ID(16) A(1) ADDONS(A) CMD(1) [PORT(2, big endian) ATYP(1) ADDR(4 | 1+n | 16)]
 * payload; the address is absent for MUX. Answer: VER(1)=0 B(1) ADDONS(B) payload.
 */
import { ProtocolError } from "#core/errors.ts";
import type { HeaderStage } from "#core/wire-state.ts";
import type { Destination } from "#core/session.ts";
import { decodeAddress, encodeAddress } from "#protocols/shared/port-first-address.ts";
import { byteAt } from "#lib/at.ts";

export const VERSION = 0;
export const COMMAND_TCP = 1;
export const COMMAND_UDP = 2;
export const COMMAND_MUX = 3;
export const VISION = "xtls-rprx-vision";
export const ID_BYTES = 16;

/** With the longest addons and the longest name. */
export const MOST_REQUEST_BYTES = ID_BYTES + 2 + 255 + 1 + 2 + 2 + 255;

const ADDONS_FLOW = 0x0a; // protobuf field 1, length-delimited

export interface VlessRequest {
  readonly flow: string;
  readonly command: number;
  /** Null for MUX. */
  readonly destination: Destination | null;
}

export function encodeRequest(id: Uint8Array, { flow, command, destination }: VlessRequest): Buffer {
  const name = Buffer.from(flow);
  const addons = flow === "" ? [] : [Buffer.from([ADDONS_FLOW, name.length]), name];
  const size = addons.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([
    Buffer.from([VERSION]),
    id,
    Buffer.from([size]),
    ...addons,
    Buffer.from([command]),
    ...(destination === null ? [] : [encodeAddress(destination)]),
  ]);
}

/** What follows version and id. Null: more is needed. Throws `ProtocolError`. */
export function decodeRequest(bytes: Buffer): { value: VlessRequest; size: number } | null {
  const addonsEnd = ID_BYTES + 2 + (bytes[ID_BYTES + 1] ?? 0);
  const command = bytes[addonsEnd];
  if (bytes.length <= addonsEnd || command === undefined) return null;
  const flow = decodeFlow(bytes.subarray(ID_BYTES + 2, addonsEnd));
  if (command === COMMAND_MUX) return { value: { flow, command, destination: null }, size: addonsEnd + 1 };
  if (command !== COMMAND_TCP && command !== COMMAND_UDP)
    throw new ProtocolError(`command ${command}, expected 1, 2 or 3`);
  const address = decodeAddress(bytes, addonsEnd + 1);
  if (address === null) return null;
  return { value: { flow, command, destination: address.destination }, size: address.next };
}

/** The flow in a protobuf message; unknown fields are passed over. */
function decodeFlow(addons: Buffer): string {
  let flow = "";
  for (let at = 0; at < addons.length;) {
    const tag = byteAt(addons, at++);
    const wireType = tag & 7;
    if (tag > 0x7f || (wireType !== 0 && wireType !== 2))
      throw new ProtocolError("addons of an unknown form");
    const [value, next] = varint(addons, at);
    at = next;
    if (wireType === 0) continue;
    if (at + value > addons.length) throw new ProtocolError("an addon longer than the addons");
    if (tag === ADDONS_FLOW) flow = addons.toString("utf8", at, at + value);
    at += value;
  }
  return flow;
}

function varint(bytes: Buffer, from: number): readonly [value: number, next: number] {
  let value = 0;
  for (let at = from; at < bytes.length && at < from + 5; at++) {
    const byte = byteAt(bytes, at);
    value += (byte & 0x7f) * 2 ** (7 * (at - from));
    if (byte < 0x80) return [value, at + 1];
  }
  throw new ProtocolError("a protobuf number without an end");
}

export const ANSWER = Buffer.from([VERSION, 0]);

/** Removes the response header from the front of a stream that may arrive in any pieces. */
export class AnswerStripper {
  /** Bytes of the header still to come; null: the length is not known yet. */
  #left: number | null = null;
  #seenVersion = false;

  get done(): boolean {
    return this.#left === 0;
  }

  get stage(): HeaderStage {
    return { seenVersion: this.#seenVersion, leftBytes: this.#left };
  }

  /** What lies behind the header. Throws `ProtocolError` for another version. */
  strip(bytes: Buffer): Buffer {
    let at = 0;
    if (!this.#seenVersion && at < bytes.length) {
      if (bytes[at++] !== VERSION) throw new ProtocolError("the server does not speak VLESS version 0");
      this.#seenVersion = true;
    }
    if (this.#left === null && at < bytes.length) this.#left = byteAt(bytes, at++);
    const skipped = Math.min(this.#left ?? 0, bytes.length - at);
    if (this.#left !== null) this.#left -= skipped;
    return bytes.subarray(at + skipped);
  }
}
