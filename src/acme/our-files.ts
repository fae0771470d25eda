/** The files of a directory: certificates with their keys, the account, what failed. Only those that bear our mark are replaced. */
import { X509Certificate } from "node:crypto";
import { mkdir, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError, errnoOf } from "#core/errors.ts";
import type { KeyPair } from "#core/tls.ts";
import { replaceFile } from "#providers/replace-file.ts";

/** A PEM reader passes over what stands outside its blocks (RFC 7468 §2). */
const MARK = "# by weir, for ACME:";
const STAND_IN = `${MARK} no certificate has been issued yet; this one stands in\n`;
const ISSUED = `${MARK} certificate, chain and key\n`;
const LARGEST_BYTES = 1024 * 1024;

export interface KeptCertificate {
  /** Signed by itself, until the authority issues one. */
  readonly standsIn: boolean;
  readonly fromMs: number;
  readonly untilMs: number;
  /** From 0 to 1, another one for each certificate. */
  readonly spread: number;
}

/** Null: there is no such file, or one of ours that is damaged. Throws `ConfigError` where it is none of ours. */
export async function readCertificate(file: string): Promise<KeptCertificate | null> {
  const text = await readOurs(file);
  if (text === null) return null;
  try {
    const { validFromDate, validToDate, fingerprint256 } = new X509Certificate(text);
    return {
      standsIn: text.startsWith(STAND_IN),
      fromMs: validFromDate.getTime(),
      untilMs: validToDate.getTime(),
      spread: Number.parseInt(fingerprint256.replaceAll(":", "").slice(0, 8), 16) / 2 ** 32,
    };
  } catch {
    return null;
  }
}

/** Throws `ConfigError` where something else lies there. */
export async function writeCertificate(
  file: string,
  { certificate, privateKey }: KeyPair,
  standsIn: boolean,
): Promise<void> {
  await readOurs(file);
  const text = `${standsIn ? STAND_IN : ISSUED}${certificate.trimEnd()}\n${privateKey.trimEnd()}\n`;
  await replaceOurs(file, text);
}

/** What `writeRecord` wrote; null: there is none. Throws `ConfigError` where it is none of ours. */
export async function readRecord(file: string): Promise<unknown> {
  const text = await readOurs(file);
  if (text === null) return null;
  try {
    return JSON.parse(text.slice(text.indexOf("\n")));
  } catch (cause) {
    throw new ConfigError(`${file} is damaged; remove it to begin anew`, { cause });
  }
}

export async function writeRecord(file: string, value: object): Promise<void> {
  await readOurs(file);
  await replaceOurs(file, `${MARK} state\n${JSON.stringify(value, null, 2)}\n`);
}

async function replaceOurs(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await replaceFile(file, Buffer.from(text));
}

async function readOurs(file: string): Promise<string | null> {
  try {
    const { size } = await stat(file);
    const text = size > LARGEST_BYTES ? "" : await readFile(file, "utf8");
    if (!text.startsWith(MARK)) throw new ConfigError(`${file} is no file that weir has written for ACME`);
    return text;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return null;
    throw error instanceof ConfigError ? error : new ConfigError(`${file} cannot be read`, { cause: error });
  }
}
