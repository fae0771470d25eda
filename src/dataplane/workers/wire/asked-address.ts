import { decodeSocksAddress, MAX_SOCKS_ADDRESS } from "#net/address/socks-address.ts";

const NOTHING = new Uint8Array(0);

/** What a stream in a client's session says first: bytes of its protocol, and behind them a SOCKS address. */
export class AskedAddress {
  /** All of it; incomplete until `isWhole`. */
  bytes: Uint8Array = NOTHING;
  isWhole = false;
  readonly #headBytes: number;

  /** So many bytes are in front of the address. */
  constructor(headBytes: number) {
    this.#headBytes = headBytes;
  }

  get mostBytes(): number {
    return this.#headBytes + MAX_SOCKS_ADDRESS;
  }

  /** Takes what is part of it and keeps that; answers with how many bytes it was. -1: there is no such address. */
  take(data: Uint8Array): number {
    const before = this.bytes.length;
    const all = before === 0 ? data : Buffer.concat([this.bytes, data]);
    try {
      const found = decodeSocksAddress(all.subarray(0, this.mostBytes), this.#headBytes);
      this.isWhole = found !== null;
      this.bytes = found === null ? all : all.subarray(0, found.next);
      return this.bytes.length - before;
    } catch {
      return -1;
    }
  }
}
