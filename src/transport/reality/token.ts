/**
 * The token that a REALITY client hides in the session id of its ClientHello:
 * AES-256-GCM of VERSION(3) 0(1) TIME(4, Unix seconds) SHORT_ID(8), under a key that only the server can also compute.
 */
import type { RealityKeys } from "#core/tls-recipe.ts";
import { TlsFault } from "#transport/tls13/alerts.ts";
import { openCipher } from "#transport/tls13/cipher.ts";
import { GROUP } from "#transport/tls13/key-exchange.ts";
import { hkdfExpand, hkdfExtract } from "#transport/tls13/key-schedule.ts";
import type { ClientHelloMessage } from "#transport/tls13/offered-hello.ts";

/** TYPE(1) LENGTH(3) VERSION(2) RANDOM(32) SESSION_ID(1+32). */
const RANDOM_AT = 6;
const SESSION_ID_AT = 39;
const SESSION_ID_BYTES = 32;
const SALT_BYTES = 20;
const RANDOM_BYTES = 32;
const TOKEN_BYTES = 16;
const KEY_BYTES = 32;
const INFO = Buffer.from("REALITY");
const AEAD = { aead: "aes-256-gcm" } as const;

export interface SealedHello {
  readonly hello: ClientHelloMessage;
  /** 32 bytes that the server's certificate is proved with. */
  readonly authKey: Buffer;
}

export type TokenOptions = Pick<RealityKeys, "publicKey" | "shortId" | "clientVersion">;

/** Fills the session id; nothing of the hello may change behind that. Throws where it has no X25519 share or the key is none. */
export function sealHello(
  hello: ClientHelloMessage,
  options: TokenOptions,
  nowMs: number = Date.now(),
): SealedHello {
  const { message, authKey, nonce } = tokenKeys(hello.message, agree(hello, options.publicKey));
  const sealed = Buffer.alloc(SESSION_ID_BYTES);
  using cipher = openCipher(AEAD, authKey);
  cipher.sealInto(sealed, 0, nonce, plainToken(options, nowMs), message);
  message.set(sealed, SESSION_ID_AT);
  const again = (): never => {
    throw new TlsFault("illegal_parameter", "REALITY: the server asks for another ClientHello");
  };
  return { hello: { message, shares: hello.shares, again }, authKey };
}

/** The message with a session id of zeros, and what protects the token in it. */
function tokenKeys(hello: Buffer, shared: Buffer) {
  const message = Buffer.from(hello);
  message.fill(0, SESSION_ID_AT, SESSION_ID_AT + SESSION_ID_BYTES);
  const random = message.subarray(RANDOM_AT, RANDOM_AT + RANDOM_BYTES);
  const secret = hkdfExtract("sha256", random.subarray(0, SALT_BYTES), shared);
  const authKey = hkdfExpand("sha256", secret, [INFO], KEY_BYTES);
  return { message, authKey, nonce: random.subarray(SALT_BYTES) };
}

export interface OpenedToken {
  /** 32 bytes that the server's certificate is proved with. */
  readonly authKey: Buffer;
  /** Unix time of the client. */
  readonly timeMs: number;
  /** 8 bytes in hex. */
  readonly shortId: string;
}

/** `hello`: the whole message, whose session id has 32 bytes; `shared`: of its X25519 share and the server's key. Null: not for this key. */
export function openToken(hello: Buffer, shared: Buffer): OpenedToken | null {
  const { message, authKey, nonce } = tokenKeys(hello, shared);
  const sealed = hello.subarray(SESSION_ID_AT, SESSION_ID_AT + SESSION_ID_BYTES);
  const plain = Buffer.alloc(TOKEN_BYTES);
  using cipher = openCipher(AEAD, authKey);
  if (cipher.openInto(plain, 0, nonce, sealed, message) < 0) return null;
  return { authKey, timeMs: plain.readUInt32BE(4) * 1000, shortId: plain.toString("hex", 8) };
}

/** The plain X25519 share counts, even behind a hybrid one. */
function agree({ shares }: ClientHelloMessage, publicKey: Uint8Array): Buffer {
  const share = shares.find(({ group }) => group === GROUP.x25519);
  if (share?.agreeX25519 === undefined) throw new Error("REALITY needs a ClientHello with an X25519 share");
  return share.agreeX25519(Buffer.from(publicKey));
}

function plainToken({ clientVersion, shortId }: TokenOptions, nowMs: number): Buffer {
  const plain = Buffer.alloc(TOKEN_BYTES);
  plain.set(clientVersion);
  plain.writeUInt32BE(Math.floor(nowMs / 1000), 4);
  plain.set(shortId, 8);
  return plain;
}
