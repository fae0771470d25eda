/** The classifier: what happens to a packet at the ingress of a LAN port, in the order of kernel-direct.md §4.3. */
import { Assembler, type Register } from "./assembler.ts";

/** Values of the LPM maps and of the flow cache. */
export const DECISION = { direct: 1, proxy: 2, bypass: 3 } as const;
/** Indexes of the counter map. */
export const COUNTER = { direct: 0, proxy: 1, flowHits: 2 } as const;

export interface ProgramOptions {
  /** Descriptors. */
  readonly maps: {
    readonly ipv4: number;
    readonly ipv6: number;
    readonly flows: number;
    readonly generation: number;
    readonly counters: number;
  };
  readonly directMark: number;
  readonly proxyMark: number;
  /** The TUN that PROXY packets are sent into; null: they are marked. */
  readonly redirectTo: number | null;
}

export const FLOW_KEY_BYTES = 40;
export const FLOW_VALUE_BYTES = 8;

/** Fields of the context (`struct __sk_buff`). */
const SKB = { length: 0, mark: 8, vlanPresent: 20 } as const;
/** Functions of the kernel (bpf-helpers(7)). */
const HELPER = { lookUp: 1, update: 2, redirect: 23, loadBytes: 26 } as const;
/** The next program on this hook decides; with a clsact filter the next filter. */
const PASS = -1;

/** On the stack, below register 10. */
const FLOW_KEY = -FLOW_KEY_BYTES;
const FLOW_VALUE = FLOW_KEY - FLOW_VALUE_BYTES;
const LPM_KEY = FLOW_VALUE - 24;
const INDEX = LPM_KEY - 8;
/** Not 0: the packet is not for the TUN, whatever the decision; of a frame so far, that it has a VLAN tag. */
const STAYS_OUT = INDEX - 8;
const PORTS = STAYS_OUT - 8;
const IP_HEADER = PORTS - 40;
const ETHERNET = IP_HEADER - 16;

/** Offsets in the flow key. */
const KEY = { protocol: 1, source: 4, destination: 20, sourcePort: 36, destinationPort: 38 } as const;

const CONTEXT: Register = 6;
const GENERATION: Register = 7;
/** The decision, and before it the ethertype and the protocol. */
const VERDICT: Register = 8;
/** Where in the frame the next header starts. */
const AT: Register = 9;
/** Behind the headers, in the same place: 1, the packet is one of a TCP connection that goes on; else 0. */
const GOES_ON: Register = AT;
const STACK: Register = 10;

const ETHERNET_BYTES = 14;
const TAG_BYTES = 4;
const ETHERTYPE = { ipv4: 0x0800, ipv6: 0x86dd, vlan: 0x8100, qinq: 0x88a8 } as const;
const PROTOCOL = { icmp: 1, tcp: 6, udp: 17, icmp6: 58 } as const;
/** Of both families. */
const ECHO_REQUESTS = [8, 128];
const DNS_PORT = 53;
const TCP_FLAGS_AT = 13;
const SYN = 0x02;
const ACK = 0x10;

export function classifierProgram(options: ProgramOptions): Uint8Array {
  const asm = new Assembler();
  readGeneration(asm, options);
  readEthernet(asm);
  readIpv4(asm);
  readIpv6(asm);
  readPorts(asm, options);
  findDecision(asm, options);
  act(asm, options);
  return asm.assemble();
}

function readGeneration(asm: Assembler, { maps }: ProgramOptions): void {
  asm.copy(CONTEXT, 1).storeImmediate(4, STACK, INDEX, 0);
  lookUp(asm, maps.generation, INDEX);
  asm.jumpIf(0, "==", 0, "pass").load(4, GENERATION, 0, 0);
  asm.copy(1, GENERATION).alu("and", 1, 1).jumpIf(1, "!=", 0, "pass"); // odd: the maps are given up
  for (let at = 0; at < FLOW_KEY_BYTES; at += 8) asm.storeImmediate(8, STACK, FLOW_KEY + at, 0);
}

/** One VLAN tag may be in the frame, or in the metadata when the card removed it; not both. */
function readEthernet(asm: Assembler): void {
  asm.set(AT, 0);
  loadFrame(asm, ETHERNET, ETHERNET_BYTES);
  asm.set(AT, ETHERNET_BYTES).load(4, 1, CONTEXT, SKB.vlanPresent).store(8, STACK, STAYS_OUT, 1);
  asm.load(2, VERDICT, STACK, ETHERNET + 12).bigEndian(VERDICT, 16);
  asm.jumpIf(VERDICT, "==", ETHERTYPE.vlan, "tag").jumpIf(VERDICT, "!=", ETHERTYPE.qinq, "untagged");
  asm.label("tag").load(8, 1, STACK, STAYS_OUT).jumpIf(1, "!=", 0, "pass");
  loadFrame(asm, ETHERNET, TAG_BYTES);
  asm.storeImmediate(8, STACK, STAYS_OUT, 1).alu("add", AT, TAG_BYTES);
  asm.load(2, VERDICT, STACK, ETHERNET + 2).bigEndian(VERDICT, 16);
  asm.label("untagged").jumpIf(VERDICT, "==", ETHERTYPE.ipv6, "ipv6");
  asm.jumpIf(VERDICT, "!=", ETHERTYPE.ipv4, "pass");
}

/** Ends with the protocol in VERDICT and AT behind the header. */
function readIpv4(asm: Assembler): void {
  loadFrame(asm, IP_HEADER, 20);
  asm.load(1, 1, STACK, IP_HEADER).copy(2, 1).alu("rsh", 2, 4).jumpIf(2, "!=", 4, "pass");
  asm.alu("and", 1, 15).alu("lsh", 1, 2).jumpIf(1, "<", 20, "pass").aluRegister("add", AT, 1);
  asm
    .load(2, 1, STACK, IP_HEADER + 6)
    .bigEndian(1, 16)
    .alu("and", 1, 0x3fff)
    .jumpIf(1, "!=", 0, "pass");
  asm.load(4, 1, STACK, IP_HEADER + 16).bigEndian(1, 32);
  for (const [network, bits] of NOT_GLOBAL)
    asm
      .copy(2, 1)
      .alu("rsh", 2, 32 - bits)
      .jumpIf(2, "==", network, "pass");
  asm.alu("rsh", 1, 24).jumpIf(1, ">=", 224, "pass");
  asm.storeImmediate(1, STACK, FLOW_KEY, 4).storeImmediate(4, STACK, LPM_KEY, 32);
  asm.load(4, 1, STACK, IP_HEADER + 12).store(4, STACK, FLOW_KEY + KEY.source, 1);
  asm.load(4, 1, STACK, IP_HEADER + 16).store(4, STACK, FLOW_KEY + KEY.destination, 1);
  asm.store(4, STACK, LPM_KEY + 4, 1).load(1, VERDICT, STACK, IP_HEADER + 9);
  asm.jumpIf(VERDICT, "==", PROTOCOL.icmp, "icmp").jump("transport");
}

/** IPv4 networks that are not globally reachable, as their leading bits. */
const NOT_GLOBAL: readonly (readonly [network: number, bits: number])[] = [
  [0, 8],
  [10, 8],
  [(100 << 2) | 1, 10], // 100.64.0.0/10
  [127, 8],
  [(169 << 8) | 254, 16],
  [(172 << 4) | 1, 12], // 172.16.0.0/12
  [(192 << 8) | 168, 16],
  [(198 << 7) | 9, 15], // 198.18.0.0/15
];

function readIpv6(asm: Assembler): void {
  asm.label("ipv6");
  loadFrame(asm, IP_HEADER, 40);
  asm.load(1, 1, STACK, IP_HEADER).alu("rsh", 1, 4).jumpIf(1, "!=", 6, "pass").alu("add", AT, 40);
  asm.load(1, 1, STACK, IP_HEADER + 24);
  for (const first of [0x00, 0xfc, 0xfd, 0xff]) asm.jumpIf(1, "==", first, "pass");
  // fe80::/10 and fec0::/10
  asm
    .jumpIf(1, "!=", 0xfe, "global6")
    .load(1, 1, STACK, IP_HEADER + 25)
    .jumpIf(1, ">=", 0x80, "pass");
  asm.label("global6").storeImmediate(1, STACK, FLOW_KEY, 6).storeImmediate(4, STACK, LPM_KEY, 128);
  for (let at = 0; at < 16; at += 4) {
    asm.load(4, 1, STACK, IP_HEADER + 8 + at).store(4, STACK, FLOW_KEY + KEY.source + at, 1);
    asm.load(4, 1, STACK, IP_HEADER + 24 + at).store(4, STACK, FLOW_KEY + KEY.destination + at, 1);
    asm.store(4, STACK, LPM_KEY + 4 + at, 1);
  }
  asm.load(1, VERDICT, STACK, IP_HEADER + 6).jumpIf(VERDICT, "==", PROTOCOL.icmp6, "icmp");
}

function readPorts(asm: Assembler, { redirectTo }: ProgramOptions): void {
  asm
    .label("transport")
    .jumpIf(VERDICT, "==", PROTOCOL.tcp, "ports")
    .jumpIf(VERDICT, "!=", PROTOCOL.udp, "pass");
  asm.label("ports");
  loadFrame(asm, PORTS, 4);
  for (const [from, to] of [
    [PORTS, KEY.sourcePort],
    [PORTS + 2, KEY.destinationPort],
  ] as const) {
    asm.load(2, 1, STACK, from).bigEndian(1, 16).jumpIf(1, "==", DNS_PORT, "pass");
    asm.store(2, STACK, FLOW_KEY + to, 1);
  }
  if (redirectTo === null) asm.label("icmp");
  else {
    readFlags(asm);
    readType(asm.label("icmp"));
  }
  asm.label("portless").set(GOES_ON, 0);
  asm.label("keyed").store(1, STACK, FLOW_KEY + KEY.protocol, VERDICT);
}

/** The TUN takes requests alone; replies and errors belong to what the kernel forwards. */
function readType(asm: Assembler): void {
  loadFrame(asm, PORTS, 1);
  asm.load(1, 1, STACK, PORTS);
  for (const type of ECHO_REQUESTS) asm.jumpIf(1, "==", type, "portless");
  asm.storeImmediate(8, STACK, STAYS_OUT, 1);
}

/**
 * The TUN knows connections by their first packet. One that begins outside comes in by the kernel's forwarding: what its
 * server answers must not enter the TUN, which would reset it.
 */
function readFlags(asm: Assembler): void {
  asm.jumpIf(VERDICT, "!=", PROTOCOL.tcp, "portless").alu("add", AT, TCP_FLAGS_AT);
  loadFrame(asm, PORTS, 1);
  asm
    .load(1, 1, STACK, PORTS)
    .alu("and", 1, SYN | ACK)
    .jumpIf(1, "==", SYN, "portless");
  asm.set(GOES_ON, 1).jumpIf(1, "!=", SYN | ACK, "keyed");
  asm
    .store(1, STACK, FLOW_KEY + KEY.protocol, VERDICT)
    .set(VERDICT, DECISION.bypass)
    .jump("remember");
}

/**
 * The cache first, as long as it is of this generation; then the longest prefix, which the cache remembers. A connection
 * that goes on stays where it began, as with connection tracking: the TUN and the rest of the kernel know nothing of
 * each other's, and would reset it.
 */
function findDecision(asm: Assembler, { maps }: ProgramOptions): void {
  lookUp(asm, maps.flows, FLOW_KEY);
  asm.jumpIf(0, "==", 0, "miss").jumpIf(GOES_ON, "!=", 0, "known");
  asm.load(4, 1, 0, 4).jumpIfRegister(1, "!=", GENERATION, "miss");
  asm.label("known").load(4, VERDICT, 0, 0);
  count(asm, maps.counters, COUNTER.flowHits, "hits");
  asm.jump("decided").label("miss").load(1, 1, STACK, FLOW_KEY).jumpIf(1, "==", 6, "lpm6");
  lookUp(asm, maps.ipv4, LPM_KEY);
  asm.jump("found").label("lpm6");
  lookUp(asm, maps.ipv6, LPM_KEY);
  asm.label("found").jumpIf(0, "==", 0, "pass").load(4, VERDICT, 0, 0);
  asm
    .label("remember")
    .store(4, STACK, FLOW_VALUE, VERDICT)
    .store(4, STACK, FLOW_VALUE + 4, GENERATION);
  asm.map(1, maps.flows).copy(2, STACK).alu("add", 2, FLOW_KEY).copy(3, STACK).alu("add", 3, FLOW_VALUE);
  asm.set(4, 0).call(HELPER.update); // a cache that is full costs a look-up, no more
  asm.label("decided");
}

function act(asm: Assembler, { maps, directMark, proxyMark, redirectTo }: ProgramOptions): void {
  asm.jumpIf(VERDICT, "==", DECISION.direct, "direct").jumpIf(VERDICT, "!=", DECISION.proxy, "pass");
  // The tag would end up inside of the IP header (transparent-proxy.md §10).
  if (redirectTo !== null) asm.load(8, 1, STACK, STAYS_OUT).jumpIf(1, "!=", 0, "pass");
  count(asm, maps.counters, COUNTER.proxy, "proxied");
  if (redirectTo === null) {
    mark(asm, directMark | proxyMark, proxyMark);
    asm.jump("pass");
  } else asm.set(1, redirectTo).set(2, 0).call(HELPER.redirect).exit();
  asm.label("direct");
  count(asm, maps.counters, COUNTER.direct, "directed");
  mark(asm, directMark | proxyMark, directMark);
  asm.label("pass").set32(0, PASS).exit();
}

/** Leaves every other bit of the packet's mark alone. */
function mark(asm: Assembler, clear: number, set: number): void {
  asm.load(4, 1, CONTEXT, SKB.mark).set32(2, ~clear).aluRegister("and", 1, 2);
  asm.set32(2, set).aluRegister("or", 1, 2).store(4, CONTEXT, SKB.mark, 1);
}

/** Two 64-bit numbers of this CPU alone: packets and bytes. */
function count(asm: Assembler, counters: number, index: number, label: string): void {
  asm.storeImmediate(4, STACK, INDEX, index);
  lookUp(asm, counters, INDEX);
  asm.jumpIf(0, "==", 0, label).load(8, 1, 0, 0).alu("add", 1, 1).store(8, 0, 0, 1);
  asm
    .load(4, 2, CONTEXT, SKB.length)
    .load(8, 1, 0, 8)
    .aluRegister("add", 1, 2)
    .store(8, 0, 8, 1)
    .label(label);
}

function lookUp(asm: Assembler, map: number, key: number): void {
  asm.map(1, map).copy(2, STACK).alu("add", 2, key).call(HELPER.lookUp);
}

/** Copies from AT on, wherever in the packet's memory it lies; what is not there passes. */
function loadFrame(asm: Assembler, to: number, bytes: number): void {
  asm.copy(1, CONTEXT).copy(2, AT).copy(3, STACK).alu("add", 3, to).set(4, bytes).call(HELPER.loadBytes);
  asm.jumpIf(0, "!=", 0, "pass");
}
