/** Identity headers (SIP023): a chain of server keys, each naming the key below it, so that one port serves many users. */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { identitySubkey, keyName } from "./methods.ts";
import { itemAt, byteAt } from "#lib/at.ts";

export const IDENTITY_BYTES = 16;

function ecbName(key: Uint8Array): string {
  return key.length === 16 ? "aes-128-ecb" : "aes-256-ecb";
}

export function encryptBlock(key: Uint8Array, block: Uint8Array): Buffer {
  const cipher = createCipheriv(ecbName(key), key, null).setAutoPadding(false);
  return cipher.update(block);
}

export function decryptBlock(key: Uint8Array, block: Uint8Array): Buffer {
  const decipher = createDecipheriv(ecbName(key), key, null).setAutoPadding(false);
  return decipher.update(block);
}

/** One block for each key above the user's: AES-ECB(identity subkey of that key, name of the next). */
export function streamIdentities(keys: readonly Uint8Array[], salt: Uint8Array): Buffer {
  const blocks = keys
    .slice(0, -1)
    .map((key, level) => encryptBlock(identitySubkey(key, salt), keyName(itemAt(keys, level + 1))));
  return Buffer.concat(blocks);
}

/** The same for a datagram: AES-ECB(key, name of the next XOR plain separate header). */
export function packetIdentities(keys: readonly Uint8Array[], header: Uint8Array): Buffer {
  const blocks = keys
    .slice(0, -1)
    .map((key, level) => encryptBlock(key, xor(keyName(itemAt(keys, level + 1)), header)));
  return Buffer.concat(blocks);
}

/** The name that a stream's block holds. */
export function openStreamIdentity(key: Uint8Array, salt: Uint8Array, block: Uint8Array): Buffer {
  return decryptBlock(identitySubkey(key, salt), block);
}

/** The name that a datagram's block holds. */
export function openPacketIdentity(key: Uint8Array, header: Uint8Array, block: Uint8Array): Buffer {
  return xor(decryptBlock(key, block), header);
}

function xor(left: Uint8Array, right: Uint8Array): Buffer {
  const out = Buffer.from(left);
  for (let at = 0; at < out.length; at++) out[at] = byteAt(left, at) ^ byteAt(right, at);
  return out;
}
