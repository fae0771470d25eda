/** Key exchanges by the runtime's own libcrypto through FFI, at half the cost of `node:crypto`. */
import { EvpExchanges, type EvpPair, type ExchangeAnswer, type ExchangeName } from "./linux/evp-exchange.ts";

export type { ExchangeAnswer, ExchangeName } from "./linux/evp-exchange.ts";
export type ExchangePair = EvpPair;

interface Library {
  exchanges?: EvpExchanges | null;
}
/** One library and one scratch memory for each thread, loaded at the first use and kept. */
const library: Library = {};

function exchanges(): EvpExchanges | null {
  if (library.exchanges === undefined) library.exchanges = EvpExchanges.open();
  return library.exchanges;
}

/** A new pair of the dialling side; null where this system or runtime has no FFI or libcrypto: the caller uses `node:crypto`. */
export function generatePair(name: ExchangeName): ExchangePair | null {
  return exchanges()?.generate(name) ?? null;
}

/** The same of an X25519 private key of 32 bytes that is used many times. */
export function keepX25519(raw: Uint8Array): ExchangePair | null {
  return exchanges()?.keep(raw) ?? null;
}

/** The accepting side of X25519MLKEM768. Undefined: as the null of `generatePair`; null: the peer's share cannot be used. */
export function encapsulate(peer: Uint8Array): ExchangeAnswer | null | undefined {
  return exchanges()?.encapsulate(peer);
}
