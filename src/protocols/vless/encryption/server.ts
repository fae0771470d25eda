/** The server's handshake of VLESS Encryption. */
import { randomBytes, randomInt } from "node:crypto";
import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { TAG_BYTES } from "#protocols/crypto/aead.ts";
import { type CipherName, CountedAead, IV_BYTES, openMask, SEALED_LENGTH_BYTES } from "./cipher.ts";
import { decodeHops, hopsBytes } from "./hops.ts";
import {
  MLKEM_PUBLIC_BYTES,
  mlKemPublic,
  shareMlKem,
  shareX25519,
  x25519Public,
  X25519_BYTES,
} from "./keys.ts";
import { type Encrypted, openEncrypted } from "./leaving.ts";
import { drawPadding, sealPadding, writePadded } from "./padding.ts";
import type { RecordSides } from "./records.ts";
import type { ServerEncryption } from "./settings.ts";
import { TICKET_BYTES, type TicketBook } from "./tickets.ts";

const CIPHERS: readonly CipherName[] = ["aes-256-gcm", "chacha20-poly1305"];
const SHARES_BYTES = MLKEM_PUBLIC_BYTES + X25519_BYTES;
/** Clients to come may send longer shares. */
const MOST_SHARES_BYTES = 8192;
const SEALED_TICKET_BYTES = TICKET_BYTES + TAG_BYTES;
/** Padding has up to 64 KiB. */
const MOST_MESSAGE_BYTES = 128 * 1024;
/** What answers a ticket that is not known: the length of a handshake's answer, and no record. */
const REFUSAL_BYTES = { from: 1279, to: 2279 };

interface StartedHandshake {
  readonly iv: Buffer;
  readonly secret: Buffer;
  readonly cipher: CipherName;
  /** For what else comes sealed by the long-lived keys, and for the answer. */
  readonly aead: CountedAead;
  /** Of the next sealed piece. */
  readonly length: number;
}

export class EncryptionServer {
  readonly #settings: ServerEncryption;
  readonly #tickets: TicketBook;

  constructor(settings: ServerEncryption, tickets: TicketBook) {
    this.#settings = settings;
    this.#tickets = tickets;
  }

  /** `mayLeave` as of `openEncrypted`. Throws `ProtocolError`; the wire stays the caller's then, and nothing is written on it. */
  async accept(wire: Duplex, timeoutMs: number, mayLeave = false): Promise<Encrypted> {
    using reader = new ByteReader(wire, { timeoutMs, maxBytes: MOST_MESSAGE_BYTES });
    const started = await this.#readBeginning(reader);
    using _aead = started.aead;
    const sides =
      started.length === SEALED_TICKET_BYTES
        ? await this.#resume(wire, reader, started)
        : await this.#handshake(wire, reader, started);
    return openEncrypted(wire, sides, mayLeave);
  }

  async #readBeginning(reader: ByteReader): Promise<StartedHandshake> {
    const { appearance, hops } = this.#settings;
    const end = hopsBytes(hops);
    // All of it is read before anything is looked at, so the time says nothing about where it failed.
    const bytes = await take(reader, end + SEALED_LENGTH_BYTES);
    const secret = decodeHops(bytes.subarray(0, end), hops, appearance !== "native");
    const iv = bytes.subarray(0, IV_BYTES);
    return { iv, secret, ...openLength(iv, secret, bytes.subarray(end)) };
  }

  #mask(united: Buffer, iv: Buffer) {
    return this.#settings.appearance === "random" ? openMask(united, iv) : null;
  }

  async #handshake(wire: Duplex, reader: ByteReader, started: StartedHandshake): Promise<RecordSides> {
    const { aead, cipher, iv, length, secret } = started;
    if (length < SHARES_BYTES + TAG_BYTES || length > MOST_SHARES_BYTES)
      throw new ProtocolError(`VLESS Encryption: shares of ${length} bytes`);
    const peerShares = aead.open(await take(reader, length)).subarray(0, SHARES_BYTES);
    const { pfsKey, shares } = answerShares(peerShares);
    const united = Buffer.concat([pfsKey, secret]);
    const writing = new CountedAead(cipher, shares, united);
    const ticket = this.#tickets.issue(pfsKey, this.#settings.ticketSeconds);
    const head = Buffer.concat([aead.sealLast(shares), writing.seal(ticket)]);
    const drawn = drawPadding(this.#settings.padding);
    const written = writePadded(wire, head, sealPadding(writing, drawn), drawn);
    await Promise.all([readPadding(reader, aead), written]);
    const reading = { aead: new CountedAead(cipher, peerShares, united), mask: this.#mask(united, iv) };
    return {
      writing: { aead: writing, mask: this.#mask(united, ticket) },
      prelude: Buffer.alloc(0),
      opening: () => reading,
    };
  }

  async #resume(wire: Duplex, reader: ByteReader, started: StartedHandshake): Promise<RecordSides> {
    const { aead, cipher, iv, secret } = started;
    const sealed = await take(reader, SEALED_TICKET_BYTES);
    const ticket = aead.open(sealed);
    const pfsKey = this.#settings.ticketSeconds.to === 0 ? null : this.#tickets.redeem(ticket, secret);
    if (pfsKey === "replayed")
      throw new ProtocolError("VLESS Encryption: a ticket came again with the same secret");
    if (pfsKey === null) {
      wire.write(refusal());
      throw new ProtocolError("VLESS Encryption: a ticket that is not known, or not any more");
    }
    const united = Buffer.concat([pfsKey, secret]);
    const random = randomBytes(IV_BYTES);
    const reading = { aead: new CountedAead(cipher, sealed, united), mask: this.#mask(united, iv) };
    return {
      writing: { aead: new CountedAead(cipher, random, united), mask: this.#mask(united, random) },
      prelude: random,
      opening: () => reading,
    };
  }
}

/** Throws `ProtocolError` where they are no public keys. */
function answerShares(peerShares: Buffer): { pfsKey: Buffer; shares: Buffer } {
  try {
    const mlKem = shareMlKem(mlKemPublic(peerShares.subarray(0, MLKEM_PUBLIC_BYTES)));
    const x25519 = shareX25519(x25519Public(peerShares.subarray(MLKEM_PUBLIC_BYTES)));
    return {
      pfsKey: Buffer.concat([mlKem.secret, x25519.secret]),
      shares: Buffer.concat([mlKem.share, x25519.share]),
    };
  } catch (cause) {
    throw new ProtocolError("VLESS Encryption: shares that are no public keys", { cause });
  }
}

async function take(reader: ByteReader, size: number): Promise<Buffer> {
  return await reader.take((bytes) =>
    bytes.length < size ? null : { value: Buffer.from(bytes.subarray(0, size)), size },
  );
}

/** By whichever cipher opens it. */
function openLength(
  iv: Buffer,
  secret: Buffer,
  sealed: Buffer,
): Pick<StartedHandshake, "aead" | "cipher" | "length"> {
  for (const cipher of CIPHERS) {
    const aead = new CountedAead(cipher, iv, secret);
    try {
      return { aead, cipher, length: aead.open(sealed).readUInt16BE(0) };
    } catch (error) {
      aead[Symbol.dispose]();
      if (!(error instanceof ProtocolError)) throw error;
    }
  }
  throw new ProtocolError("VLESS Encryption: the handshake was not made for our key");
}

async function readPadding(reader: ByteReader, aead: CountedAead): Promise<void> {
  const length = aead.open(await take(reader, SEALED_LENGTH_BYTES)).readUInt16BE(0);
  aead.open(await take(reader, length));
}

function refusal(): Buffer {
  const bytes = randomBytes(randomInt(REFUSAL_BYTES.from, REFUSAL_BYTES.to + 1));
  // Where the client looks for its first record's header.
  if (bytes[IV_BYTES] === 0x17) bytes[IV_BYTES] = 0x16;
  return bytes;
}
