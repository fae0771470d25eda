/** Ethernet frames written out, for classifiers. */
import { bytesOfIp } from "#net/address/ip.ts";
import { ip } from "./routing.ts";

export interface FrameSpec {
  readonly from?: string;
  readonly to: string;
  /** Default TCP. */
  readonly protocol?: number;
  readonly ports?: readonly [source: number, destination: number];
  /** Of TCP; absent: SYN. */
  readonly flags?: number;
  /** Of ICMP; absent: an echo request of IPv4. */
  readonly type?: number;
  /** Ethertypes of VLAN tags in the frame, the outer one first. */
  readonly tags?: readonly number[];
  /** IPv4: flags and offset; IPv6: absent. */
  readonly fragment?: number;
  /** Extra IPv4 header bytes, a multiple of 4. */
  readonly options?: number;
  /** IPv6: a header of this type stands before the transport header. */
  readonly extension?: number;
  /** What remains of the frame; absent: all. */
  readonly cut?: number;
}

export const TCP = 6;
export const UDP = 17;
export const SYN = 0x02;
export const ACK = 0x10;

export function frame(spec: FrameSpec): Buffer {
  const { to, tags = [], cut } = spec;
  const v6 = to.includes(":");
  const ethernet = Buffer.concat([
    Buffer.from("0200000000010200000000aa", "hex"),
    ...tags.map((type) => uint16(type, 100)),
    uint16(v6 ? 0x86dd : 0x0800),
  ]);
  const whole = Buffer.concat([ethernet, v6 ? ipv6(spec) : ipv4(spec)]);
  return cut === undefined ? whole : whole.subarray(0, cut);
}

function ipv4({
  from = "192.168.1.2",
  to,
  protocol = TCP,
  fragment = 0,
  options = 0,
  ...rest
}: FrameSpec): Buffer {
  const payload = transport(protocol, rest);
  const header = Buffer.alloc(20 + options, 1); // no-operation options
  header.fill(0, 0, 20);
  header[0] = 0x40 | (header.length / 4);
  header.writeUInt16BE(header.length + payload.length, 2);
  header.writeUInt16BE(fragment, 6);
  header.set([64, protocol], 8);
  header.set(bytesOfIp(ip(from)), 12);
  header.set(bytesOfIp(ip(to)), 16);
  return Buffer.concat([header, payload]);
}

function ipv6({ from = "fd00::2", to, protocol = TCP, extension, ...rest }: FrameSpec): Buffer {
  const inner = transport(protocol, rest);
  const payload =
    extension === undefined ? inner : Buffer.concat([Buffer.from([protocol, 0, 0, 0, 0, 0, 0, 0]), inner]);
  const header = Buffer.alloc(40);
  header[0] = 0x60;
  header.writeUInt16BE(payload.length, 4);
  header.set([extension ?? protocol, 64], 6);
  header.set(bytesOfIp(ip(from)), 8);
  header.set(bytesOfIp(ip(to)), 24);
  return Buffer.concat([header, payload]);
}

function transport(
  protocol: number,
  { ports = [40_000, 443], flags = SYN, type = 8 }: Pick<FrameSpec, "ports" | "flags" | "type">,
): Buffer {
  const hasPorts = protocol === TCP || protocol === UDP;
  const bytes = Buffer.concat([hasPorts ? uint16(...ports) : uint16(type << 8, 0), Buffer.alloc(20)]);
  if (protocol === TCP) bytes[13] = flags;
  return bytes;
}

function uint16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [at, value] of values.entries()) bytes.writeUInt16BE(value, at * 2);
  return bytes;
}
