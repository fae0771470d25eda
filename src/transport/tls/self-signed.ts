/** A certificate that vouches for itself (RFC 5280): for tests, or for clients that pin it. */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { der, sequence } from "#lib/der.ts";
import { bytesOfIp, parseIp } from "#net/address/ip.ts";

const DAYS = 3650;
const DAY_MS = 86_400_000;
const hex = (text: string): Buffer => Buffer.from(text, "hex");
const VERSION_3 = hex("a003020102");
const ECDSA_SHA256 = sequence(hex("06082a8648ce3d040302"));
const COMMON_NAME = hex("0603550403");
const ALT_NAME = hex("0603551d11");
const BASIC_CONSTRAINTS = sequence(hex("0603551d13"), hex("0101ff"), hex("04023000"));
/** Longer ones have no place in a name (RFC 5280, ub-common-name). */
const LONGEST_NAME = 64;

export interface CertifiedKey {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly privateKey: string;
}

/** For host names and IP addresses, for ten years from `nowMs` on. ECDSA over P-256. */
export function makeSelfSigned(names: readonly string[], nowMs: number): CertifiedKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = nameOf((names[0] ?? "").slice(0, LONGEST_NAME));
  const body = sequence(
    VERSION_3,
    der(0x02, hex("01"), randomBytes(15)), // the first byte keeps it positive
    ECDSA_SHA256,
    name,
    sequence(timeOf(nowMs - DAY_MS), timeOf(nowMs + DAYS * DAY_MS)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(BASIC_CONSTRAINTS, sequence(ALT_NAME, der(0x04, sequence(...names.map(altName)))))),
  );
  const signature = sign("sha256", body, privateKey);
  return {
    certificate: pem("CERTIFICATE", sequence(body, ECDSA_SHA256, der(0x03, Buffer.of(0), signature))),
    privateKey: pem("PRIVATE KEY", privateKey.export({ type: "pkcs8", format: "der" })),
  };
}

const nameOf = (common: string): Buffer =>
  sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(common)))));

/** RFC 5280 wants UTCTime before 2050 and GeneralizedTime from then on. */
function timeOf(ms: number): Buffer {
  const text = `${new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:T]/g, "")}Z`;
  return text < "2050" ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text));
}

function altName(name: string): Buffer {
  const ip = parseIp(name);
  return ip === null ? der(0x82, Buffer.from(name)) : der(0x87, bytesOfIp(ip));
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").replaceAll(/(.{64})(?=.)/g, "$1\n");
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`;
}
