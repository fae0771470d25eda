/** One-time codes of authenticator apps: HOTP (RFC 4226) by the time (RFC 6238), SHA-1, six digits, steps of 30 seconds. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { ConfigError, messageOf } from "#core/errors.ts";
import { decodeBase32 } from "#lib/base32.ts";
import { checkFile } from "#store/file-safety.ts";

const STEP_MS = 30_000;
const DIGITS = 6;
/** A phone's clock may be so many steps off. */
const DRIFT_STEPS = 1;
/** RFC 4226 §4, R6: 128 bits at least. */
const LEAST_BYTES = 16;
const MOST_FILE_BYTES = 1024;

export function codeOf(key: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const digest = createHmac("sha1", key).update(counter).digest();
  const offset = (digest.at(-1) ?? 0) & 0x0f; // RFC 4226 §5.3, dynamic truncation
  return String((digest.readUInt32BE(offset) & 0x7fff_ffff) % 10 ** DIGITS).padStart(DIGITS, "0");
}

export function stepAt(nowMs: number): number {
  return Math.floor(nowMs / STEP_MS);
}

/** The step that the code is of, now or next to it; null: of none. As long for every code. */
export function stepOf(key: Uint8Array, code: string, nowMs: number): number | null {
  let found: number | null = null;
  for (let step = stepAt(nowMs) - DRIFT_STEPS; step <= stepAt(nowMs) + DRIFT_STEPS; step++)
    if (timingSafeEqual(digestOf(code), digestOf(codeOf(key, step)))) found = step;
  return found;
}

/**
 * What commands send in the place of a secret whose digest is `mark`: who can read the file of the codes needs none. It
 * opens nothing without that file, and says nothing of it.
 */
export function commandCredential(key: Uint8Array, mark: string): string {
  return createHmac("sha256", key).update(`weir: commands of this machine\0${mark}`).digest("base64url");
}

/** The secret in a file that others must not read, in base32. Throws `ConfigError`, which quotes none of it. */
export function readTotpFile(path: string): Buffer {
  try {
    checkFile(path);
  } catch (error) {
    throw fault(messageOf(error));
  }
  return totpKeyIn(path);
}

/** The same, whosever the file is: a command may be run by the administrator. */
export function totpKeyIn(path: string): Buffer {
  let text: string;
  try {
    if (statSync(path).size > MOST_FILE_BYTES) throw new Error(`${path} is no secret: it is too long`);
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw fault(messageOf(error));
  }
  const key = decodeBase32(text);
  if (key === null || key.length < LEAST_BYTES)
    throw fault(
      `${path} has no secret in base32 of at least ${LEAST_BYTES} bytes; weir totp FILE writes one`,
    );
  return key;
}

const fault = (why: string): ConfigError => new ConfigError(`svc.totp-file: ${why}`);
const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest();
