/** The accepting side: finds the hidden ClientHello in the one that everybody sees (RFC 9849 §7.1). */
import { TlsFault } from "#transport/tls13/alerts.ts";
import { EXTENSION } from "#transport/tls13/extensions.ts";
import { encodeMessage, MESSAGE } from "#transport/tls13/handshake-messages.ts";
import { type ClientHello, decodeClientHello, encodeClientHello } from "#transport/tls13/hello-messages.ts";
import { decodeEch, type OuterEch } from "./extension.ts";
import { type HpkeContext, hpkeRecipient, KDF_SHA256 } from "./hpke.ts";
import { unpackInner } from "./inner-hello.ts";
import type { EchKey } from "./keys.ts";
import { echInfo } from "./offer.ts";

/** What of the first hello a second one must repeat. */
interface Accepted {
  readonly context: HpkeContext;
  readonly aead: number;
  readonly configId: number;
}

/** Of one connection. */
export class EchAcceptor {
  readonly #keys: readonly EchKey[];
  #accepted: Accepted | null = null;

  constructor(keys: readonly EchKey[]) {
    this.#keys = keys;
  }

  /**
   * `message`: a client's first hello. The hidden one, a whole message; null: there is none, or none for these keys, and
   * the hello counts that everybody sees. Throws `TlsFault`.
   */
  open(message: Buffer): Buffer | null {
    const outer = decodeClientHello(message.subarray(4));
    const body = outer.extensions.get(EXTENSION.encryptedClientHello);
    const ech = body === undefined ? null : decodeEch(body);
    if (ech === null || ech.kdf !== KDF_SHA256) return null;
    for (const key of this.#keys) {
      if (key.config.id !== ech.configId || !key.config.aeads.includes(ech.aead)) continue;
      const context = contextOf(key, ech);
      const packed = context === null ? null : openPayload(context, message, ech);
      if (context === null || packed === null) continue;
      this.#accepted = { context, aead: ech.aead, configId: ech.configId };
      return messageOf(unpackInner(packed, outer));
    }
    return null;
  }

  /** The hello behind a HelloRetryRequest, where the first one was opened. Throws `TlsFault`. */
  openAgain(message: Buffer): Buffer {
    const outer = decodeClientHello(message.subarray(4));
    const body = outer.extensions.get(EXTENSION.encryptedClientHello);
    if (body === undefined || this.#accepted === null)
      throw new TlsFault("missing_extension", "a second ClientHello without encrypted_client_hello");
    const { context, aead, configId } = this.#accepted;
    const ech = decodeEch(body);
    const isSame =
      ech !== null &&
      ech.kdf === KDF_SHA256 &&
      ech.aead === aead &&
      ech.configId === configId &&
      ech.enc.length === 0;
    if (!isSame) throw new TlsFault("illegal_parameter", "a second ClientHello sealed in another way");
    const packed = openPayload(context, message, ech);
    if (packed === null) throw new TlsFault("decrypt_error", "a second ClientHello that cannot be opened");
    return messageOf(unpackInner(packed, outer));
  }
}

/** Null: what should be a key is none. */
function contextOf({ config, privateKey }: EchKey, { enc, aead }: OuterEch): HpkeContext | null {
  try {
    return hpkeRecipient(privateKey, enc, aead, echInfo(config));
  } catch {
    return null;
  }
}

/** The hello around it is authenticated, with zeros in place of what is sealed (RFC 9849 §5.2). */
function openPayload(context: HpkeContext, message: Buffer, { payload }: OuterEch): Buffer | null {
  const aad = Buffer.from(message.subarray(4));
  const at = payload.byteOffset - message.byteOffset - 4; // it was read from `message`, and shares its memory
  aad.fill(0, at, at + payload.length);
  return context.open(payload, aad);
}

function messageOf(hello: ClientHello): Buffer {
  return encodeMessage(MESSAGE.clientHello, encodeClientHello(hello));
}
