/** Packets by their marks (RFC 9000 §19.3.2), as a receiver tells them. */
import type { WireReader } from "#transport/quic/wire/reader.ts";
import { varintBytes, type WireWriter } from "#transport/quic/wire/writer.ts";

/** Of the IP header (RFC 3168 §5). */
export const ECT1 = 1;
export const ECT0 = 2;
export const CE = 3;

export class EcnCounts {
  ect0 = 0;
  ect1 = 0;
  ce = 0;

  /** A packet with these two bits has come. */
  add(ecn: number): void {
    if (ecn === ECT0) this.ect0++;
    else if (ecn === ECT1) this.ect1++;
    else if (ecn === CE) this.ce++;
  }

  get isEmpty(): boolean {
    return this.ect0 + this.ect1 + this.ce === 0;
  }

  get bytes(): number {
    return varintBytes(this.ect0) + varintBytes(this.ect1) + varintBytes(this.ce);
  }

  write(out: WireWriter): void {
    for (const count of [this.ect0, this.ect1, this.ce]) out.varint(count);
  }

  read(reader: WireReader): void {
    this.ect0 = reader.varint();
    this.ect1 = reader.varint();
    this.ce = reader.varint();
  }

  take(other: EcnCounts): void {
    this.ect0 = other.ect0;
    this.ect1 = other.ect1;
    this.ce = other.ce;
  }

  /**
   * May a peer that has told `before` tell this when so many more packets with ECT(0), and none with ECT(1), have arrived
   * (RFC 9000 §13.4.2.1)?
   */
  follows(before: EcnCounts, marked: number): boolean {
    const isGrowing = this.ect0 >= before.ect0 && this.ce >= before.ce;
    return isGrowing && this.ect1 === 0 && this.ect0 - before.ect0 + this.ce - before.ce >= marked;
  }
}
