/** UDP of a TUN that is made here: replies, in runs where the kernel cuts them (RFC 768). */
import { MOST_PACKET_BYTES, PACKET_AT } from "#platform/tun.ts";
import type { PacketBuilder } from "./packet-builder.ts";
import { LEAST_MTU, UDP, UDP_HEADER_BYTES, V4_HEADER_BYTES, V6_HEADER_BYTES } from "#net/packet/packet.ts";
import type { PathMtus } from "./path-mtus.ts";

/** Every kernel that cuts takes so many. */
const MOST_SEGMENTS = 64;

/** Datagrams of one size in the buffer of the device, behind one header. */
interface Run {
  readonly source: Uint8Array;
  readonly sourcePort: number;
  readonly destination: Uint8Array;
  readonly destinationPort: number;
  /** Where the UDP header is. */
  readonly at: number;
  readonly size: number;
  end: number;
  count: number;
}

export class DatagramWriter {
  readonly #builder: PacketBuilder;
  readonly #mtu: number;
  /** Over IPv6; packets of IPv4 are cut on their way. */
  readonly #paths: PathMtus;
  /** A whole datagram, while it is cut into fragments. */
  #whole: Uint8Array | null = null;
  /** What waits for the end of the turn, or for what cannot join it. */
  #run: Run | null = null;
  #turnEnds = false;
  readonly #onTurnEnd = (): void => {
    this.#turnEnds = false;
    this.#flush();
  };

  constructor(builder: PacketBuilder, mtu: number, paths: PathMtus) {
    this.#builder = builder;
    this.#mtu = mtu;
    this.#paths = paths;
    builder.beforeReuse(() => this.#flush());
  }

  /**
   * A datagram from `source` to `destination`, both of one family, which must not change: equal objects are equal
   * addresses. Longer than the MTU it is cut into fragments. Sent at the end of the turn at the latest: a
   * packet costs the kernel far more than its bytes, so datagrams of one flow and size go as one, which the kernel
   * splits at the far end. False: too long, and nothing was sent.
   */
  write(
    source: Uint8Array,
    sourcePort: number,
    destination: Uint8Array,
    destinationPort: number,
    payload: Uint8Array,
  ): boolean {
    const size = payload.length;
    const run = this.#run;
    if (
      run !== null &&
      run.source === source &&
      run.sourcePort === sourcePort &&
      run.destination === destination &&
      run.destinationPort === destinationPort &&
      this.#join(run, payload)
    )
      return true;
    const length = UDP_HEADER_BYTES + size;
    const headerBytes = source.length === 4 ? V4_HEADER_BYTES : V6_HEADER_BYTES;
    if (headerBytes + length > MOST_PACKET_BYTES) return false;
    const most = this.#mostTo(destination, headerBytes + length);
    const at = this.#builder.header(source, destination, UDP, length);
    const view = this.#builder.view;
    view.setUint16(at, sourcePort);
    view.setUint16(at + 2, destinationPort);
    view.setUint16(at + 4, length);
    view.setUint16(at + 6, 0);
    this.#builder.bytes.set(payload, at + UDP_HEADER_BYTES);
    if (headerBytes + length > most) this.#fragments(at, length, most);
    else {
      const end = at + length;
      this.#run = { source, sourcePort, destination, destinationPort, at, size, end, count: 1 };
      if (this.#builder.device.cutsDatagrams && size > 0) this.#atTurnEnd();
      else this.#flush();
    }
    return true;
  }

  #atTurnEnd(): void {
    if (this.#turnEnds) return;
    this.#turnEnds = true;
    setImmediate(this.#onTurnEnd);
  }

  /** False: it cannot. */
  #join(run: Run, payload: Uint8Array): boolean {
    const size = payload.length;
    const end = run.end + size;
    if (size === 0 || size > run.size || run.count === MOST_SEGMENTS || end - PACKET_AT > MOST_PACKET_BYTES)
      return false;
    this.#builder.bytes.set(payload, run.end);
    run.end = end;
    run.count++;
    if (size < run.size) this.#flush(); // only the last one may be shorter
    return true;
  }

  #flush(): void {
    const run = this.#run;
    if (run === null) return;
    this.#run = null;
    const { at, end, size, count } = run;
    const length = end - at;
    if (count > 1) this.#builder.makeRun(at, length, size, count);
    this.#builder.leaveChecksum(at, 6, UDP, length);
    this.#builder.send(end);
  }

  /** The longest packet that arrives there. */
  #mostTo(destination: Uint8Array, length: number): number {
    const short = destination.length === 4 || length <= LEAST_MTU;
    return short ? this.#mtu : this.#paths.most(destination, 0, this.#mtu);
  }

  #fragments(at: number, length: number, mtu: number): void {
    this.#builder.sum(at, 6, UDP, length);
    this.#whole ??= new Uint8Array(MOST_PACKET_BYTES);
    this.#whole.set(this.#builder.bytes.subarray(at, at + length));
    const dataAt = this.#builder.beginFragments(at, UDP);
    const most = Math.max(8, Math.floor((mtu - (dataAt - PACKET_AT)) / 8) * 8);
    for (let from = 0; from < length; from += most) {
      const piece = Math.min(most, length - from);
      this.#builder.bytes.set(this.#whole.subarray(from, from + piece), dataAt);
      this.#builder.sendFragment(dataAt, piece, from, from + piece === length);
    }
  }
}
