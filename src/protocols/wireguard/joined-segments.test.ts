import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, pseudoSum, sumOf } from "#net/packet/checksum.ts";
import { NEEDS_CHECKSUM, PACKET_AT, type PacketBuffer } from "#platform/tun.ts";
import { JoinedSegments } from "./joined-segments.ts";

const ACK = 0x10;
const PSH = 0x08;
const FIN = 0x01;

interface Written {
  readonly flags: number;
  readonly kind: number;
  readonly segmentBytes: number;
  readonly packet: Buffer;
}

/** A device that keeps what is written to it. */
function openDevice() {
  const memory = new ArrayBuffer(PACKET_AT + 65_535);
  const bytes = new Uint8Array(memory);
  const buffer: PacketBuffer = { bytes, view: new DataView(memory), pointer: 0n, packetPointer: 0n };
  const written: Written[] = [];
  const device = {
    hasHeader: true,
    cutsDatagrams: false,
    incoming: buffer,
    outgoing: buffer,
    write({ view }: PacketBuffer, length: number) {
      const packet = Buffer.from(bytes.subarray(PACKET_AT, PACKET_AT + length));
      written.push({
        flags: view.getUint8(0),
        kind: view.getUint8(1),
        segmentBytes: view.getUint16(4, true),
        packet,
      });
    },
  };
  return { device, written };
}

interface Segment {
  readonly family?: 4 | 6;
  readonly port?: number;
  readonly sequence: number;
  readonly flags?: number;
  readonly text: string;
}

function packetOf({ family = 4, port = 80, sequence, flags = ACK, text }: Segment): Buffer {
  const head = family === 4 ? 20 : 40;
  const packet = Buffer.alloc(head + 20 + text.length);
  if (family === 4) {
    packet.set([0x45, 0, packet.length >> 8, packet.length & 0xff, 0, sequence & 0xff, 0x40, 0, 64, 6]);
    packet.set([10, 77, 0, 1, 10, 77, 0, 2], 12);
  } else {
    packet.set([0x60, 0, 0, 0, (packet.length - head) >> 8, (packet.length - head) & 0xff, 6, 64]);
    packet.set([0xfd, 0x77], 8);
    packet.set([0xfd, 0x78], 24);
  }
  packet.writeUInt16BE(port, head);
  packet.writeUInt16BE(5000, head + 2);
  packet.writeUInt32BE(sequence, head + 4);
  packet.writeUInt32BE(99, head + 8);
  packet.set([0x50, flags, 1, 0], head + 12);
  packet.write(text, head + 20);
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
  if (family === 4) view.setUint16(10, 0xffff - fold(sumOf(view, 0, head)));
  const pseudo = pseudoSum(view, family === 4 ? 12 : 8, family === 4 ? 4 : 16, 6, packet.length - head);
  view.setUint16(head + 16, 0xffff - fold(sumOf(view, head, packet.length, pseudo)));
  return packet;
}

function run(...segments: readonly Segment[]): readonly Written[] {
  const { device, written } = openDevice();
  const joined = new JoinedSegments(device);
  for (const segment of segments) {
    const packet = packetOf(segment);
    joined.packet.bytes.set(packet, PACKET_AT);
    joined.add(packet.length);
  }
  joined.flush();
  joined.flush();
  return written;
}

const texts = (written: readonly Written[], head = 40) =>
  written.map(({ packet }) => packet.toString("latin1", head));

for (const [family, head, kind] of [
  [4, 20, 1],
  [6, 40, 4],
] as const)
  test(`IPv${family}: segments that follow each other become one that the kernel may cut again`, () => {
    const written = run(
      { family, sequence: 0xffff_fffe, text: "aaaa" },
      { family, sequence: 2, text: "bbbb" },
      { family, sequence: 6, flags: ACK | PSH, text: "cc" },
    );
    const [one] = written;
    assert.ok(one !== undefined && written.length === 1);
    assert.deepEqual(texts(written, head + 20), ["aaaabbbbcc"]);
    assert.deepEqual([one.flags, one.kind, one.segmentBytes], [NEEDS_CHECKSUM, kind, 4]);
    const { packet } = one;
    const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
    assert.equal(view.getUint16(family === 4 ? 2 : 4), family === 4 ? packet.length : packet.length - head);
    if (family === 4) assert.equal(fold(sumOf(view, 0, 20)), 0xffff);
    const addresses = family === 4 ? 12 : 8;
    assert.equal(
      view.getUint16(head + 16),
      fold(pseudoSum(view, addresses, family === 4 ? 4 : 16, 6, packet.length - head)),
    );
    assert.equal(packet[head + 13], ACK | PSH);
  });

test("one segment alone goes as it came", () => {
  const segment = { sequence: 5, text: "alone" };
  const written = run(segment);
  assert.deepEqual(written, [{ flags: 0, kind: 0, segmentBytes: 0, packet: packetOf(segment) }]);
});

test("what does not follow begins anew, in order", () => {
  const cases: readonly (readonly [readonly Segment[], readonly string[]])[] = [
    [
      [
        { sequence: 0, text: "aaaa" },
        { sequence: 8, text: "cccc" },
      ],
      ["aaaa", "cccc"],
    ], // a gap
    [
      [
        { sequence: 0, text: "aaaa" },
        { sequence: 4, text: "bbbb", port: 81 },
      ],
      ["aaaa", "bbbb"],
    ],
    [
      [
        { sequence: 0, text: "aaaa" },
        { sequence: 4, text: "bbbbb" },
      ],
      ["aaaa", "bbbbb"],
    ], // longer
    [
      [
        { sequence: 0, text: "aaaa" },
        { sequence: 4, text: "bb" },
        { sequence: 6, text: "cccc" },
      ],
      ["aaaabb", "cccc"],
    ],
    [
      [
        { sequence: 0, text: "aaaa", flags: ACK | PSH },
        { sequence: 4, text: "bbbb" },
      ],
      ["aaaa", "bbbb"],
    ],
    [
      [
        { sequence: 0, text: "aaaa" },
        { sequence: 4, text: "bbbb", flags: ACK | FIN },
      ],
      ["aaaa", "bbbb"],
    ],
    [
      [
        { sequence: 0, text: "aaaa" },
        { sequence: 4, text: "" },
        { sequence: 4, text: "bbbb" },
      ],
      ["aaaa", "", "bbbb"],
    ],
  ];
  for (const [segments, expected] of cases) assert.deepEqual(texts(run(...segments)), expected);
});

test("a TCP header that says that it is longer than the packet is passed on as it is", () => {
  const { device, written } = openDevice();
  const joined = new JoinedSegments(device);
  const packet = packetOf({ sequence: 0, text: "aaaa" });
  packet[32] = 0xf0;
  joined.packet.bytes.set(packet, PACKET_AT);
  joined.add(packet.length);
  assert.deepEqual(
    written.map(({ packet: whole }) => whole),
    [packet],
  );
});

test("a segment whose sum is wrong is passed on as it is, for the kernel to drop", () => {
  const { device, written } = openDevice();
  const joined = new JoinedSegments(device);
  const packets = [0, 4].map((sequence) => packetOf({ sequence, text: "aaaa" }));
  packets[1]?.write("x", 40);
  for (const packet of packets) {
    joined.packet.bytes.set(packet, PACKET_AT);
    joined.add(packet.length);
  }
  joined.flush();
  assert.deepEqual(
    written.map(({ packet, flags }) => [packet, flags]),
    packets.map((packet) => [packet, 0]),
  );
});

test("no packet gets longer than a packet can be", () => {
  const text = "x".repeat(1000);
  const written = run(...Array.from({ length: 100 }, (_, at) => ({ sequence: at * 1000, text })));
  assert.deepEqual(
    written.map(({ packet }) => packet.length),
    [65_040, 35_040],
  );
});
