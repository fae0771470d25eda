/**
 * The token that a REALITY client hides in the session id of its ClientHello:
 * AES-256-GCM of VERSION(3) 0(1) TIME(4, Unix seconds) SHORT_ID(8), under a key that only the server can also compute.
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import type { RealityOptions } from "#core/tls.ts";
import { TlsFault } from "#transport/tls13/alerts.ts";
import { GROUP } from "#transport/tls13/key-exchange.ts";
import type { ClientHelloMessage } from "#transport/tls13/offered-hello.ts";

/** TYPE(1) LENGTH(3) VERSION(2) RANDOM(32) SESSION_ID(1+32). */
const RANDOM_AT = 6;
const SESSION_ID_AT = 39;
const SESSION_ID_BYTES = 32;
const SALT_BYTES = 20;
const RANDOM_BYTES = 32;
const TOKEN_BYTES = 16;
const TAG_BYTES = 16;

export interface SealedHello {
  readonly hello: ClientHelloMessage;
  /** 32 bytes that the server's certificate is proved with. */
  readonly authKey: Buffer;
}

export type TokenOptions = Pick<RealityOptions, "publicKey" | "shortId" | "clientVersion">;

/** Fills the session id; nothing of the hello may change behind that. Throws where it has no X25519 share or the key is none. */
export function sealHello(
  hello: ClientHelloMessage,
  options: TokenOptions,
  nowMs: number = Date.now(),
): SealedHello {
  const { message, authKey, nonce } = tokenKeys(hello.message, agree(hello, options.publicKey));
  const cipher = createCipheriv("aes-256-gcm", authKey, nonce);
  cipher.setAAD(message);
  const sealed = Buffer.concat([
    cipher.update(plainToken(options, nowMs)),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  sealed.copy(message, SESSION_ID_AT);
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
  const authKey = Buffer.from(hkdfSync("sha256", shared, random.subarray(0, SALT_BYTES), "REALITY", 32));
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
  const cipher = createDecipheriv("aes-256-gcm", authKey, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(message).setAuthTag(sealed.subarray(TOKEN_BYTES));
  const plain = cipher.update(sealed.subarray(0, TOKEN_BYTES));
  try {
    cipher.final();
  } catch {
    return null;
  }
  return { authKey, timeMs: plain.readUInt32BE(4) * 1000, shortId: plain.toString("hex", 8) };
}

/** The plain X25519 share counts, even behind a hybrid one. */
function agree({ shares }: ClientHelloMessage, publicKey: Buffer): Buffer {
  const share = shares.find(({ group }) => group === GROUP.x25519);
  if (share?.agreeX25519 === undefined) throw new Error("REALITY needs a ClientHello with an X25519 share");
  return share.agreeX25519(publicKey);
}

function plainToken({ clientVersion, shortId }: TokenOptions, nowMs: number): Buffer {
  const plain = Buffer.alloc(TOKEN_BYTES);
  plain.set(clientVersion);
  plain.writeUInt32BE(Math.floor(nowMs / 1000), 4);
  plain.set(shortId, 8);
  return plain;
}
