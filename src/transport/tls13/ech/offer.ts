/** Hides a ClientHello in another one (RFC 9849 §6.1). */
import { randomBytes } from "node:crypto";
import { TAG_BYTES } from "#transport/tls13/cipher.ts";
import { EXTENSION } from "#transport/tls13/extensions.ts";
import { encodeMessage, MESSAGE } from "#transport/tls13/handshake-messages.ts";
import { type ClientHello, decodeClientHello, encodeClientHello } from "#transport/tls13/hello-messages.ts";
import type { ClientHelloMessage, HiddenHello, Retry } from "#transport/tls13/offered-hello.ts";
import type { EchConfig } from "./config.ts";
import { encodeOuterEch } from "./extension.ts";
import { type HpkeSender, hpkeSender } from "./hpke.ts";
import { makeInner, packInner } from "./inner-hello.ts";

const INFO = Buffer.from("tls ech\0");
const NOTHING = Buffer.alloc(0);
const RANDOM_BYTES = 32;

/** What is sealed with, for a configuration of the server. */
export function echInfo({ raw }: Pick<EchConfig, "raw">): Buffer {
  return Buffer.concat([INFO, raw]);
}

/** What stays the same behind a HelloRetryRequest. */
interface Sealing {
  readonly config: EchConfig;
  readonly sender: HpkeSender;
  readonly random: Buffer;
  readonly serverName: string;
}

/**
 * `cover`: a hello with the configuration's public name; where it has an invented Encrypted ClientHello, that is where
 * the real one goes. `serverName`: the name to hide; empty: none. Throws `TlsFault` where the server's key is none; the
 * key shares of `cover` are freed then.
 */
export function hideHello(
  cover: ClientHelloMessage,
  config: EchConfig,
  serverName: string,
): ClientHelloMessage {
  try {
    const sender = hpkeSender(config.publicKey, config.aead, echInfo(config));
    return hide(cover, { config, sender, random: randomBytes(RANDOM_BYTES), serverName }, sender.enc);
  } catch (error) {
    for (const share of cover.shares) share[Symbol.dispose]();
    throw error;
  }
}

function hide(cover: ClientHelloMessage, sealing: Sealing, enc: Buffer): ClientHelloMessage {
  const { config, sender, random, serverName } = sealing;
  const plain = coverOf(cover.message);
  const innerHello = makeInner(plain, random, serverName);
  const packed = packInner(innerHello, plain, config.maxNameBytes);
  const head = { aead: config.aead, configId: config.id, enc };
  // The sealed bytes are authenticated together with the hello around them, in which they are zero (RFC 9849 §5.2).
  const blank = encodeOuterEch({ ...head, payload: Buffer.alloc(packed.length + TAG_BYTES) });
  const payload = sender.context.seal(packed, encodeClientHello(withEch(plain, blank)));
  const ech = encodeOuterEch({ ...head, payload });
  const hidden: HiddenHello = {
    message: encodeMessage(MESSAGE.clientHello, encodeClientHello(innerHello)),
    random,
    again: (retry) => hide(cover.again(retry), sealing, NOTHING),
  };
  return { ...covered(cover, ech), hidden };
}

/** The hello that everybody sees. Where the server does not answer the hidden one, the same bytes are sent again. */
function covered(cover: ClientHelloMessage, ech: Buffer): ClientHelloMessage {
  const hello = withEch(coverOf(cover.message), ech);
  return {
    message: encodeMessage(MESSAGE.clientHello, encodeClientHello(hello)),
    shares: cover.shares,
    again: (retry: Retry) => covered(cover.again(retry), ech),
  };
}

/** With a place for the extension; it makes the hello so long that no browser would pad it. */
function coverOf(message: Buffer): ClientHello {
  const hello = decodeClientHello(message.subarray(4));
  const extensions = new Map(hello.extensions);
  extensions.delete(EXTENSION.padding);
  const [last] = [...extensions].at(-1) ?? [];
  if (!extensions.has(EXTENSION.encryptedClientHello)) {
    extensions.set(EXTENSION.encryptedClientHello, NOTHING);
    const body = last === undefined ? undefined : extensions.get(last);
    // An invented extension of one byte is the last one of browsers that have it.
    if (last !== undefined && body?.equals(Buffer.of(0)) === true) {
      extensions.delete(last);
      extensions.set(last, body);
    }
  }
  return { ...hello, extensions };
}

function withEch(hello: ClientHello, ech: Buffer): ClientHello {
  const extensions = new Map(hello.extensions);
  extensions.set(EXTENSION.encryptedClientHello, ech);
  return { ...hello, extensions };
}
