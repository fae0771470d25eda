/** Throw-away certificates for tests, made in memory: no tool, no files, nothing that expires in the repository. */
import type { KeyObject } from "node:crypto";
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { bytesOfIp, parseIp } from "#net/address/ip.ts";

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
  /** SHA-256 of the DER, hex. */
  readonly fingerprint: string;
  readonly privateKey: KeyObject;
  readonly subject: string;
}

export interface CertificateOptions {
  /** Names and addresses it is valid for; the first is the common name. */
  readonly names?: readonly string[];
  /** Absent: signed by itself. */
  readonly issuer?: TestCertificate;
  readonly ca?: boolean;
  /** Milliseconds from now; negative: it has expired. */
  readonly validForMs?: number;
}

const tlv = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts);
  const length =
    body.length < 128
      ? Buffer.from([body.length])
      : body.length < 256
        ? Buffer.from([0x81, body.length])
        : Buffer.from([0x82, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([Buffer.from([tag]), length, body]);
};
const sequence = (...parts: Uint8Array[]) => tlv(0x30, ...parts);
const hex = (text: string) => Buffer.from(text, "hex");
const OID_COMMON_NAME = hex("0603550403");
const OID_ECDSA_SHA256 = hex("06082a8648ce3d040302");
const OID_BASIC_CONSTRAINTS = hex("0603551d13");
const OID_ALT_NAME = hex("0603551d11");

const nameOf = (common: string) =>
  sequence(tlv(0x31, sequence(OID_COMMON_NAME, tlv(0x0c, Buffer.from(common)))));

function timeOf(atMs: number): Buffer {
  const text = new Date(atMs)
    .toISOString()
    .replaceAll(/[-:T]|\.\d+/g, "")
    .slice(2);
  return tlv(0x17, Buffer.from(text));
}

function altName(name: string): Buffer {
  const ip = parseIp(name);
  return ip === null ? tlv(0x82, Buffer.from(name)) : tlv(0x87, bytesOfIp(ip));
}

export function makeCertificate(options: CertificateOptions = {}): TestCertificate {
  const {
    names = ["localhost", "127.0.0.1"],
    issuer,
    ca = issuer === undefined,
    validForMs = 86_400_000,
  } = options;
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const subject = names[0] as string;
  const algorithm = sequence(OID_ECDSA_SHA256);
  const extensions = sequence(
    sequence(OID_BASIC_CONSTRAINTS, hex("0101ff"), tlv(4, sequence(...(ca ? [hex("0101ff")] : [])))),
    sequence(OID_ALT_NAME, tlv(4, sequence(...names.map(altName)))),
  );
  const body = sequence(
    tlv(0xa0, hex("020102")),
    tlv(2, Buffer.concat([hex("01"), randomBytes(8)])),
    algorithm,
    nameOf(issuer?.subject ?? subject),
    sequence(timeOf(Date.now() - 2 * 86_400_000), timeOf(Date.now() + validForMs)),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, extensions),
  );
  const signature = sign("sha256", body, issuer?.privateKey ?? privateKey);
  const der = sequence(body, algorithm, tlv(3, hex("00"), signature));
  const lines = der.toString("base64").replaceAll(/(.{64})(?=.)/g, "$1\n");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
    fingerprint: createHash("sha256").update(der).digest("hex"),
    privateKey,
    subject,
  };
}
