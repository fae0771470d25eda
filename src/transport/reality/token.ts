/**
 * The token that a REALITY client hides in the session id of its ClientHello:
 * AES-256-GCM of VERSION(3) 0(1) TIME(4, Unix seconds) SHORT_ID(8), under a key that only the server can also compute.
 */
import { createCipheriv, hkdfSync } from "node:crypto";
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
  const message = Buffer.from(hello.message);
  message.fill(0, SESSION_ID_AT, SESSION_ID_AT + SESSION_ID_BYTES);
  const random = message.subarray(RANDOM_AT, RANDOM_AT + RANDOM_BYTES);
  const salt = random.subarray(0, SALT_BYTES);
  const shared = agree(hello, options.publicKey);
  const authKey = Buffer.from(hkdfSync("sha256", shared, salt, "REALITY", 32));
  const cipher = createCipheriv("aes-256-gcm", authKey, random.subarray(SALT_BYTES));
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

/** The plain X25519 share counts, even behind a hybrid one; the hybrid's only where there is no other. */
function agree({ shares }: ClientHelloMessage, publicKey: Buffer): Buffer {
  const share =
    shares.find(({ group }) => group === GROUP.x25519) ??
    shares.find(({ group }) => group === GROUP.x25519MlKem768);
  if (share?.agreeX25519 === undefined) throw new Error("REALITY needs a ClientHello with an X25519 share");
  return share.agreeX25519(publicKey);
}

function plainToken({ clientVersion, shortId }: TokenOptions, nowMs: number): Buffer {
  const plain = Buffer.alloc(16);
  plain.set(clientVersion);
  plain.writeUInt32BE(Math.floor(nowMs / 1000), 4);
  plain.set(shortId, 8);
  return plain;
}
