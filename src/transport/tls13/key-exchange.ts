/** Key exchanges of TLS 1.3: X25519, the NIST curves, and X25519MLKEM768 (RFC 8446 §4.2.8, draft-ietf-tls-ecdhe-mlkem). */
import {
  createECDH,
  createPrivateKey,
  createPublicKey,
  decapsulate,
  diffieHellman,
  encapsulate,
  generateKeyPairSync,
  type KeyObject,
} from "node:crypto";
import {
  encapsulate as encapsulateKept,
  type ExchangePair,
  generatePair,
  keepX25519,
} from "#platform/key-exchange.ts";
import { TlsFault } from "./alerts.ts";

export const GROUP = { p256: 0x17, p384: 0x18, p521: 0x19, x25519: 0x1d, x25519MlKem768: 0x11ec } as const;

/** DER in front of a raw public key: SubjectPublicKeyInfo of X25519 (RFC 8410) and of ML-KEM-768 (RFC 9935). */
const X25519_SPKI = Buffer.from("302a300506032b656e032100", "hex");
const MLKEM_SPKI = Buffer.from("308204b2300b0609608648016503040402038204a100", "hex");
/** PKCS #8 of X25519 in front of the raw key (RFC 8410). */
const X25519_PKCS8 = Buffer.from("302e020100300506032b656e04220420", "hex");
const X25519_BYTES = 32;
const MLKEM_KEY_BYTES = 1184;
const MLKEM_CIPHERTEXT_BYTES = 1088;

const CURVES = new Map<number, string>([
  [GROUP.p256, "prime256v1"],
  [GROUP.p384, "secp384r1"],
  [GROUP.p521, "secp521r1"],
]);

/** The dialling side's half of one key exchange. */
export interface KeyShare extends Disposable {
  readonly group: number;
  /** What goes to the peer. */
  readonly share: Buffer;
  /** The secret shared with the peer's half. Throws `TlsFault`. */
  finish(peer: Buffer): Buffer;
  /** The secret of its X25519 key and another public key of 32 bytes; absent where it has no such key, or one with ML-KEM. */
  readonly agreeX25519?: (publicKey: Buffer) => Buffer;
  /** Frees the private key, where a library outside keeps it. */
  [Symbol.dispose](): void;
}

/** Null: a group that is not built. */
export function openKeyShare(group: number): KeyShare | null {
  if (group === GROUP.x25519) return openX25519Share();
  if (group === GROUP.x25519MlKem768) return openHybridShare();
  const curve = CURVES.get(group);
  return curve === undefined ? null : openCurveShare(group, curve);
}

/** Can `openKeyShare` make one? */
export function isKnownGroup(group: number): boolean {
  return group === GROUP.x25519 || group === GROUP.x25519MlKem768 || CURVES.has(group);
}

export function openX25519Share(): KeyShare {
  const kept = generatePair("X25519");
  if (kept !== null) {
    const share = keptShare(GROUP.x25519, kept);
    return { ...share, agreeX25519: share.finish };
  }
  const pair = generateKeyPairSync("x25519");
  const finish = (peer: Buffer): Buffer => finishX25519(pair.privateKey, peer);
  const share = rawKey(pair.publicKey, X25519_BYTES);
  return { group: GROUP.x25519, share, finish, agreeX25519: finish, [Symbol.dispose]: nothingToFree };
}

/** The library refuses a secret of zeros, as RFC 8446 §7.4.2 asks. */
function keptShare(group: number, pair: ExchangePair): KeyShare {
  return {
    group,
    share: pair.publicKey,
    finish: (peer) => pair.agree(peer) ?? unusable(),
    [Symbol.dispose]: () => pair[Symbol.dispose](),
  };
}

function nothingToFree(): void {}

/** The ML-KEM key, then the X25519 key; the secrets in the same order. Its X25519 key is one of its own. */
function openHybridShare(): KeyShare {
  const kept = generatePair("X25519MLKEM768");
  if (kept !== null) return keptShare(GROUP.x25519MlKem768, kept);
  const kem = generateKeyPairSync("ml-kem-768");
  const curve = openX25519Share();
  return {
    group: GROUP.x25519MlKem768,
    share: Buffer.concat([rawKey(kem.publicKey, MLKEM_KEY_BYTES), curve.share]),
    finish(peer) {
      checkSize(peer, MLKEM_CIPHERTEXT_BYTES + X25519_BYTES);
      const inner = agree(() => decapsulate(kem.privateKey, peer.subarray(0, MLKEM_CIPHERTEXT_BYTES)));
      return Buffer.concat([inner, curve.finish(peer.subarray(MLKEM_CIPHERTEXT_BYTES))]);
    },
    [Symbol.dispose]: nothingToFree,
  };
}

function openCurveShare(group: number, curve: string): KeyShare {
  const pair = createECDH(curve);
  const share = pair.generateKeys();
  return {
    group,
    share,
    finish(peer) {
      checkSize(peer, share.length);
      if (peer[0] !== 4) throw new TlsFault("illegal_parameter", "a point that is not uncompressed");
      return agree(() => pair.computeSecret(peer));
    },
    [Symbol.dispose]: nothingToFree,
  };
}

/** What a server answers with, and the secret. */
export interface KeyAnswer {
  readonly share: Buffer;
  readonly secret: Buffer;
}

/** The accepting side: its own half, and the secret shared with the client's. Throws `TlsFault`; null: a group that is not built. */
export function answerKeyShare(group: number, client: Buffer): KeyAnswer | null {
  if (group === GROUP.x25519MlKem768) return answerHybrid(client);
  using own = openKeyShare(group);
  return own === null ? null : { share: own.share, secret: own.finish(client) };
}

function answerHybrid(client: Buffer): KeyAnswer {
  const kept = encapsulateKept(client);
  if (kept !== undefined) return kept ?? unusable();
  checkSize(client, MLKEM_KEY_BYTES + X25519_BYTES);
  const key = agree(() => publicKeyOf(MLKEM_SPKI, client.subarray(0, MLKEM_KEY_BYTES)));
  const { sharedKey, ciphertext } = encapsulate(key);
  const curve = openX25519Share();
  const secret = curve.finish(client.subarray(MLKEM_KEY_BYTES));
  return {
    share: Buffer.concat([ciphertext, curve.share]),
    secret: Buffer.concat([sharedKey, secret]),
  };
}

/** An X25519 private key of 32 bytes that is used many times: the secret of it and a raw public key. Throws `TlsFault`. */
export type X25519Agreement = (peer: Buffer) => Buffer;

export function openX25519Agreement(raw: Buffer): X25519Agreement {
  const kept = keepX25519(raw);
  if (kept !== null) return (peer) => kept.agree(peer) ?? unusable();
  const key = x25519PrivateKey(raw);
  return (peer) => finishX25519(key, peer);
}

/** The secret with the X25519 half of a client's share of either group; null: it has none. Throws `TlsFault`. */
export function agreeWithShares(
  agreeWith: X25519Agreement,
  shares: ReadonlyMap<number, Buffer>,
): Buffer | null {
  const peer = shares.get(GROUP.x25519) ?? shares.get(GROUP.x25519MlKem768)?.subarray(-X25519_BYTES);
  return peer === undefined ? null : agreeWith(peer);
}

/** X25519 private key of 32 bytes. */
export function x25519PrivateKey(raw: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([X25519_PKCS8, raw]), type: "pkcs8", format: "der" });
}

/** The raw public key of an X25519 key of either kind. */
export function x25519PublicBytes(key: KeyObject): Buffer {
  return rawKey(key.type === "private" ? createPublicKey(key) : key, X25519_BYTES);
}

/** The shared secret of X25519; `peer` is the raw public key. Throws `TlsFault`. */
export function finishX25519(privateKey: KeyObject, peer: Buffer): Buffer {
  checkSize(peer, X25519_BYTES);
  return agree(() => diffieHellman({ privateKey, publicKey: publicKeyOf(X25519_SPKI, peer) }));
}

function agree<Result>(run: () => Result): Result {
  try {
    return run();
  } catch (cause) {
    return unusable(cause);
  }
}

function unusable(cause?: unknown): never {
  throw new TlsFault("illegal_parameter", "a key share that cannot be used", { cause });
}

function checkSize(peer: Buffer, size: number): void {
  if (peer.length !== size) throw new TlsFault("illegal_parameter", `a key share of ${peer.length} bytes`);
}

function publicKeyOf(prefix: Buffer, raw: Buffer): KeyObject {
  return createPublicKey({ key: Buffer.concat([prefix, raw]), type: "spki", format: "der" });
}

function rawKey(key: KeyObject, size: number): Buffer {
  return key.export({ type: "spki", format: "der" }).subarray(-size);
}
