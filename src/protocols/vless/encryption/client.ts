/** The client's handshake of VLESS Encryption: one round trip, or none with a ticket. */
import { decapsulate, generateKeyPairSync, randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { DialError, messageOf } from "#core/errors.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { TAG_BYTES } from "#protocols/crypto/aead.ts";
import {
  type CipherName,
  CountedAead,
  encodeLength,
  IV_BYTES,
  openMask,
  SEALED_LENGTH_BYTES,
} from "./cipher.ts";
import { encodeHops } from "./hops.ts";
import { type Encrypted, openEncrypted } from "./leaving.ts";
import { agreeX25519, MLKEM_CIPHERTEXT_BYTES, rawPublic, X25519_BYTES } from "./keys.ts";
import { drawPadding, sealPadding, writePadded } from "./padding.ts";
import type { Opening, RecordSides } from "./records.ts";
import type { ClientEncryption } from "./settings.ts";
import { TICKET_BYTES } from "./tickets.ts";

const ANSWER_SHARES_BYTES = MLKEM_CIPHERTEXT_BYTES + X25519_BYTES;

interface Ticket {
  readonly bytes: Buffer;
  readonly pfsKey: Buffer;
  readonly expiresAtMs: number;
}

/** What every handshake begins with. */
interface Beginning {
  readonly iv: Buffer;
  readonly secret: Buffer;
  /** Iv and shares of the hops. */
  readonly head: Buffer;
  readonly sealer: CountedAead;
}

/** Of one node. Keeps the newest ticket, where tickets are used. */
export class EncryptionClient {
  readonly #settings: ClientEncryption;
  readonly #nowMs: () => number;
  readonly #cipher: CipherName;
  #ticket: Ticket | null = null;

  /** `nowMs`: any clock that does not jump. `cipher`: servers find out; the other one is for machines without AES. */
  constructor(settings: ClientEncryption, nowMs: () => number, cipher: CipherName = "aes-256-gcm") {
    this.#settings = settings;
    this.#nowMs = nowMs;
    this.#cipher = cipher;
  }

  /** `mayLeave` as of `openEncrypted`. Owns `wire` from here, and destroys it where the handshake fails. Throws `DialError`. */
  async open(wire: Duplex, signal: AbortSignal, mayLeave = false): Promise<Encrypted> {
    const ticket = this.#ticket;
    const beginning = this.#begin();
    using _sealer = beginning.sealer;
    if (ticket !== null && ticket.expiresAtMs > this.#nowMs())
      return openEncrypted(wire, this.#resume(beginning, ticket), mayLeave);
    try {
      return openEncrypted(wire, await this.#handshake(wire, beginning, signal), mayLeave);
    } catch (cause) {
      wire.destroy();
      if (cause instanceof DialError) throw cause;
      throw new DialError("failed", `the VLESS Encryption handshake failed: ${messageOf(cause)}`, { cause });
    }
  }

  #begin(): Beginning {
    const { appearance, hops } = this.#settings;
    const iv = randomBytes(IV_BYTES);
    const { bytes, secret } = encodeHops(iv, hops, appearance !== "native");
    return {
      iv,
      secret,
      head: Buffer.concat([iv, bytes]),
      sealer: new CountedAead(this.#cipher, iv, secret),
    };
  }

  /** Headers of records are masked where nothing may look like TLS. */
  #mask(united: Buffer, iv: Buffer) {
    return this.#settings.appearance === "random" ? openMask(united, iv) : null;
  }

  // IV HOPS LENGTH(sealed)=1232 SHARES(sealed: ML-KEM 1184, X25519 32) PADDING
  async #handshake(
    wire: Duplex,
    { iv, secret, head, sealer }: Beginning,
    signal: AbortSignal,
  ): Promise<RecordSides> {
    const mlKem = generateKeyPairSync("ml-kem-768");
    const x25519 = generateKeyPairSync("x25519");
    const shares = Buffer.concat([rawPublic(mlKem.publicKey), rawPublic(x25519.publicKey)]);
    const hello = Buffer.concat([
      head,
      sealer.seal(encodeLength(shares.length + TAG_BYTES)),
      sealer.seal(shares),
    ]);
    const drawn = drawPadding(this.#settings.padding);
    const written = writePadded(wire, hello, sealPadding(sealer, drawn), drawn);
    const [answer] = await Promise.all([readAnswer(wire, signal), written]);
    // SHARES(sealed: ML-KEM 1088, X25519 32) TICKET(sealed: 16) PADDING
    const peerShares = sealer.openLast(answer.subarray(0, ANSWER_SHARES_BYTES + TAG_BYTES));
    const pfsKey = Buffer.concat([
      decapsulate(mlKem.privateKey, peerShares.subarray(0, MLKEM_CIPHERTEXT_BYTES)),
      agreeX25519(x25519.privateKey, peerShares.subarray(MLKEM_CIPHERTEXT_BYTES)),
    ]);
    const united = Buffer.concat([pfsKey, secret]);
    const reading = { aead: new CountedAead(this.#cipher, peerShares, united) };
    const ticket = reading.aead.open(answer.subarray(ANSWER_SHARES_BYTES + TAG_BYTES));
    this.#keep(ticket, pfsKey);
    return {
      writing: { aead: new CountedAead(this.#cipher, shares, united), mask: this.#mask(united, iv) },
      prelude: Buffer.alloc(0),
      opening: skipPadding({ ...reading, mask: this.#mask(united, ticket) }),
    };
  }

  #keep(bytes: Buffer, pfsKey: Buffer): void {
    const seconds = bytes.readUInt16BE(0);
    if (!this.#settings.resumes || seconds === 0) return;
    this.#ticket = { bytes, pfsKey, expiresAtMs: this.#nowMs() + seconds * 1000 };
  }

  // IV HOPS LENGTH(sealed)=32 TICKET(sealed: 16) RECORDS; the answer: RANDOM(16) RECORDS
  #resume({ iv, secret, head, sealer }: Beginning, ticket: Ticket): RecordSides {
    const length = sealer.seal(encodeLength(TICKET_BYTES + TAG_BYTES));
    const sealed = sealer.seal(ticket.bytes);
    const united = Buffer.concat([ticket.pfsKey, secret]);
    return {
      writing: { aead: new CountedAead(this.#cipher, sealed, united), mask: this.#mask(united, iv) },
      prelude: Buffer.concat([head, length, sealed]),
      opening: (arrived) => {
        const random = arrived.take(IV_BYTES);
        if (random === null) return null;
        const kept = Buffer.from(random);
        return { aead: new CountedAead(this.#cipher, kept, united), mask: this.#mask(united, kept) };
      },
      onRefused: () => {
        if (this.#ticket === ticket) this.#ticket = null;
      },
    };
  }
}

async function readAnswer(wire: Duplex, signal: AbortSignal): Promise<Buffer> {
  const size = ANSWER_SHARES_BYTES + TAG_BYTES + TICKET_BYTES + TAG_BYTES;
  using reader = new ByteReader(wire, { signal });
  return await reader.take((bytes) =>
    bytes.length < size ? null : { value: Buffer.from(bytes.subarray(0, size)), size },
  );
}

/** The server's padding is read with its first records, so a slow one costs nothing. */
function skipPadding(side: NonNullable<ReturnType<Opening>>): Opening {
  let length = -1;
  return (arrived) => {
    if (length < 0) {
      const sealed = arrived.take(SEALED_LENGTH_BYTES);
      if (sealed === null) return null;
      length = side.aead.open(sealed).readUInt16BE(0);
    }
    const padding = arrived.take(length);
    if (padding === null) return null;
    side.aead.open(padding);
    return side;
  };
}
