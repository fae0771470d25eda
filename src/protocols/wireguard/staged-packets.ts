const MOST_PACKETS = 128;

/** Copies of packets that wait for keys; beyond the bound the oldest is dropped. */
export class StagedPackets {
  #packets: Uint8Array[] = [];

  push(packet: Uint8Array): void {
    if (this.#packets.length === MOST_PACKETS) this.#packets.shift();
    this.#packets.push(Uint8Array.from(packet));
  }

  /** All of them, in order; none is left. */
  take(): readonly Uint8Array[] {
    const packets = this.#packets;
    this.#packets = [];
    return packets;
  }

  clear(): void {
    this.#packets = [];
  }
}
