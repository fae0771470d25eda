/** Certificate, its compressed form, CertificateRequest and CertificateVerify (RFC 8446 §4.3.2, §4.4, RFC 8879). */
import { brotliDecompressSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { TlsFault } from "./alerts.ts";
import { EXTENSION, readExtensions } from "./extensions.ts";
import { encodeMessage, MAX_MESSAGE_BYTES, MESSAGE } from "./handshake-messages.ts";
import { u16, vector16, vector24, vector8, WireReader } from "./wire.ts";

/** A longer chain is refused. */
const MAX_CHAIN = 16;
const DELEGATED_CREDENTIAL = 34;
const NO_EXTENSIONS = u16(0);

/**
 * The chain of a server in DER, its own certificate first; empty: it shows none. `offered`: the extensions of our hello.
 * Throws `TlsFault`.
 */
export function decodeCertificate(body: Buffer, offered: ReadonlySet<number>): Buffer[] {
  const reader = new WireReader(body, "Certificate");
  if (reader.vector8().length > 0)
    throw new TlsFault("illegal_parameter", "Certificate: nobody asked for it");
  const list = new WireReader(reader.vector24(), "Certificate");
  reader.end();
  const chain: Buffer[] = [];
  while (list.left > 0) {
    if (chain.length === MAX_CHAIN) throw new TlsFault("bad_certificate", "a chain that is too long");
    chain.push(list.vector24(1));
    for (const type of readExtensions(list, "Certificate").keys()) checkExtension(type, offered);
  }
  return chain;
}

function checkExtension(type: number, offered: ReadonlySet<number>): void {
  if (!offered.has(type)) throw new TlsFault("unsupported_extension", `Certificate: ${type} was not offered`);
  if (type === DELEGATED_CREDENTIAL)
    throw new TlsFault("unsupported_certificate", "a certificate with a delegated credential");
}

/** `chain` in DER, the own certificate first. */
export function encodeCertificate(context: Uint8Array, chain: readonly Uint8Array[]): Buffer {
  const entries = chain.map((der) => Buffer.concat([vector24(der), NO_EXTENSIONS]));
  return encodeMessage(MESSAGE.certificate, vector8(context), vector24(...entries));
}

type Decompress = (bytes: Buffer, options: { maxOutputLength: number }) => Buffer;

/** By the numbers of RFC 8879 §7.3. */
const DECOMPRESS = new Map<number, Decompress>([
  [1, (bytes, options) => inflateSync(bytes, options)],
  [2, (bytes, options) => brotliDecompressSync(bytes, options)],
  [3, (bytes, options) => zstdDecompressSync(bytes, options)],
]);

/** The body of the Certificate inside; `offered`: the algorithms of our hello. Throws `TlsFault`. */
export function decompressCertificate(body: Buffer, offered: readonly number[]): Buffer {
  const reader = new WireReader(body, "CompressedCertificate");
  const algorithm = reader.u16();
  const size = reader.u24();
  const packed = reader.vector24(1);
  reader.end();
  const decompress = offered.includes(algorithm) ? DECOMPRESS.get(algorithm) : undefined;
  if (decompress === undefined) throw new TlsFault("illegal_parameter", "a compression that was not offered");
  if (size === 0 || size > MAX_MESSAGE_BYTES)
    throw new TlsFault("bad_certificate", `a compressed certificate of ${size} bytes`);
  let plain: Buffer;
  try {
    plain = decompress(packed, { maxOutputLength: size });
  } catch (cause) {
    throw new TlsFault("bad_certificate", "a certificate that cannot be decompressed", { cause });
  }
  if (plain.length !== size)
    throw new TlsFault("bad_certificate", "a compressed certificate of another size");
  return plain;
}

export interface CertificateRequest {
  /** Goes into our Certificate. */
  readonly context: Buffer;
  /** Signature schemes that the server takes, in its order. */
  readonly schemes: readonly number[];
}

/** Throws `TlsFault`. */
export function decodeCertificateRequest(body: Buffer): CertificateRequest {
  const reader = new WireReader(body, "CertificateRequest");
  const context = reader.vector8();
  const extensions = readExtensions(reader, "CertificateRequest");
  reader.end();
  if (context.length > 0) throw new TlsFault("illegal_parameter", "CertificateRequest: a context");
  const list = extensions.get(EXTENSION.signatureAlgorithms);
  if (list === undefined)
    throw new TlsFault("missing_extension", "CertificateRequest without signature_algorithms");
  const schemes = new WireReader(list, "signature_algorithms");
  const numbers = schemes.numbers16();
  schemes.end();
  return { context, schemes: numbers };
}

export interface CertificateVerify {
  readonly scheme: number;
  readonly signature: Buffer;
}

/** Throws `TlsFault`. */
export function decodeCertificateVerify(body: Buffer): CertificateVerify {
  const reader = new WireReader(body, "CertificateVerify");
  const scheme = reader.u16();
  const signature = reader.vector16();
  reader.end();
  return { scheme, signature };
}

export function encodeCertificateVerify({ scheme, signature }: CertificateVerify): Buffer {
  return encodeMessage(MESSAGE.certificateVerify, u16(scheme), vector16(signature));
}
