/** What the stack does with good packets. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Datagram, Destination, Ip } from "#core/session.ts";
import { FIRST_NAT_PORT } from "./nat-table.ts";
import { tunAddress } from "./settings.ts";
import {
  ACK,
  echo,
  FAMILIES,
  FIN,
  memoryStack,
  MTU,
  type Opened,
  PORT,
  RST,
  SYN,
  tcp,
  udp,
} from "../../test/support/memory-stack.ts";
import {
  addressBytes,
  ipPacket,
  onesSum,
  pseudoHeader,
  readPacket,
  tcpSegment,
} from "../../test/support/packets.ts";

/** Cut as the kernel does. */
function piecesOf(payload: Buffer, size: number): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < payload.length; at += size) {
    const piece = payload.subarray(at, at + size);
    assert.ok(piece.every((byte) => byte === piece[0]));
    pieces.push(`${piece.length} of ${piece[0]}`);
  }
  return pieces;
}

for (const family of [4, 6] as const) {
  const { client, far, own, next, other } = FAMILIES[family];

  test(`IPv${family}: a segment goes to the listener and its answer back, bytes and checksums as they were`, () => {
    const { send, stack } = memoryStack();
    const payload = Buffer.from("odd");
    const [there] = send(tcp(client, far, { sourcePort: 40_000, destinationPort: 443, flags: SYN, payload }));
    const turned = readPacket(there!);
    assert.deepEqual([turned.source, turned.destination, turned.intact], [next, own, true]);
    const natPort = turned.transport.readUInt16BE(0);
    assert.ok(natPort >= FIRST_NAT_PORT);
    assert.equal(turned.transport.readUInt16BE(2), PORT);
    assert.deepEqual(turned.transport.subarray(20), payload);
    const [back] = send(
      tcp(own, next, { sourcePort: PORT, destinationPort: natPort, flags: SYN | ACK, payload }),
    );
    const answered = readPacket(back!);
    assert.deepEqual([answered.source, answered.destination, answered.intact], [far, client, true]);
    assert.deepEqual([answered.transport.readUInt16BE(0), answered.transport.readUInt16BE(2)], [443, 40_000]);
    const nat = family === 4 ? stack.inet4!.nat : stack.inet6!.nat;
    assert.equal(nat.endpointsOf(natPort)!.source.port, 40_000);
    const [more] = send(tcp(client, far, { sourcePort: 40_000, destinationPort: 443, flags: ACK }));
    assert.equal(readPacket(more!).transport.readUInt16BE(0), natPort);
  });

  test(`IPv${family}: where the kernel left the sum to us, the field keeps a sum of addresses only`, () => {
    const { send, device } = memoryStack();
    const segment = tcpSegment({ sourcePort: 40_000, destinationPort: 443, flags: SYN });
    const packet = ipPacket({ source: client, destination: far, protocol: 6, transport: segment });
    const at = packet.length - segment.length;
    const partial = (from: string, to: string) =>
      onesSum(pseudoHeader(addressBytes(from), addressBytes(to), 6, segment.length));
    packet.writeUInt16BE(partial(client, far), at + 16);
    const header = Buffer.from([1, 1, 40, 0, 0xd4, 5, at, 0, 16, 0]);
    const [turned] = send(packet, header);
    assert.equal(turned!.readUInt16BE(at + 16), partial(next, own));
    assert.deepEqual(device.written[0]!.subarray(0, 10), header);
  });

  test(`IPv${family}: a segment of no known flow is reset, a reset is not`, () => {
    const { send } = memoryStack();
    const segment = { sourcePort: 40_000, destinationPort: 443, sequence: 5, acknowledgment: 99 };
    const [answer] = send(tcp(client, far, { ...segment, flags: ACK, payload: Buffer.alloc(10) }));
    const reset = readPacket(answer!);
    assert.deepEqual([reset.source, reset.destination, reset.intact], [far, client, true]);
    assert.deepEqual([reset.transport[13], reset.transport.readUInt32BE(4)], [RST, 99]);
    const [refused] = send(tcp(client, far, { ...segment, flags: FIN, payload: Buffer.alloc(10) }));
    const { transport } = readPacket(refused!);
    assert.deepEqual([transport[13], transport.readUInt32BE(8)], [RST | ACK, 5 + 10 + 1]);
    assert.deepEqual(send(tcp(client, far, { ...segment, flags: RST })), []);
  });

  test(`IPv${family}: no client reaches the router's loopback by the TUN's own network, but for DNS`, () => {
    const { send } = memoryStack();
    const to = (destinationPort: number) =>
      send(tcp(client, next, { sourcePort: 40_000, destinationPort, flags: SYN })).map(
        (packet) => readPacket(packet).destination,
      );
    assert.deepEqual(to(80), [client]); // a reset
    assert.deepEqual(to(53), [own]);
  });

  test(`IPv${family}: the listener's packet to a port without a session is dropped`, () => {
    const { send } = memoryStack();
    assert.deepEqual(send(tcp(own, next, { sourcePort: PORT, destinationPort: 12_345, flags: ACK })), []);
  });

  for (const hasHeader of [true, false])
    test(`IPv${family}: one session for a client's socket, replies from any address, header ${hasHeader}`, () => {
      const { send, opened, device } = memoryStack({ hasHeader });
      send(udp(client, far, 5000, 7000));
      send(udp(client, other, 5000, 7001, Buffer.from("x")));
      send(udp(client, far, 5001, 7000));
      assert.equal(opened.length, 2);
      const [{ got, flow, source }] = opened as [Opened];
      assert.equal(source.port, 5000);
      assert.deepEqual(
        got.map(({ payload, destination }) => `${Buffer.from(payload)} ${destination.port}`),
        ["hello 7000", "x 7001"],
      );
      for (const size of [0, 1, 1400]) {
        device.written.length = 0;
        flow.send({ payload: Buffer.alloc(size, 3), destination: got[1]!.destination });
        const packet = device.written[0]!.subarray(10);
        finishChecksum(device.written[0]!);
        const { source: from, destination, intact, transport } = readPacket(packet);
        assert.deepEqual([from, destination, intact], [other, client, true]);
        assert.deepEqual([transport.readUInt16BE(0), transport.readUInt16BE(2)], [7001, 5000]);
        assert.deepEqual(transport.subarray(8), Buffer.alloc(size, 3));
      }
    });

  test(`IPv${family}: replies of one turn, one peer and one size go as one packet, for the kernel to cut`, async () => {
    const { send, opened, device } = memoryStack({ cutsDatagrams: true });
    send(udp(client, far, 5000, 7000));
    const { flow, got } = opened[0] as Opened;
    const { destination } = got[0] as Datagram;
    device.written.length = 0;
    const sizes = [900, 900, 900, 20, 900, 0, 900, 901, 901];
    for (const [at, size] of sizes.entries()) flow.send({ payload: Buffer.alloc(size, at), destination });
    flow.send({ payload: Buffer.alloc(901, 9), destination: { ...destination, port: 7001 } });
    assert.equal(device.written.length, 5); // the last one waits for the end of the turn
    await nextTurn();
    const pieces = device.written.map((packet) => {
      const [type, head, size] = [packet[1], packet.readUInt16LE(2), packet.readUInt16LE(4)];
      finishChecksum(packet);
      const { intact, transport } = readPacket(packet.subarray(10));
      assert.deepEqual([intact, transport.readUInt16BE(4)], [true, transport.length]);
      const payload = transport.subarray(8);
      if (type === 5) assert.equal(head, packet.length - 10 - payload.length);
      return [type, ...piecesOf(payload, type === 5 ? size : payload.length)];
    });
    assert.deepEqual(pieces, [
      [5, "900 of 0", "900 of 1", "900 of 2", "20 of 3"],
      [0, "900 of 4"],
      [0],
      [0, "900 of 6"],
      [5, "901 of 7", "901 of 8"],
      [0, "901 of 9"],
    ]);
  });

  test(`IPv${family}: a question is taken, a damaged one is not, and without DNS it is a datagram`, () => {
    const { send, questions, opened } = memoryStack();
    send(udp(client, far, 5000, 53));
    assert.deepEqual(questions.map(String), ["hello"]);
    const damaged = udp(client, far, 5000, 53);
    damaged[damaged.length - 1] = 0;
    send(damaged);
    assert.equal(questions.length, 1);
    assert.equal(opened.length, 0);
    const plain = memoryStack({ dns: false });
    plain.send(udp(client, far, 5000, 53));
    assert.equal(plain.opened.length, 1);
  });

  test(`IPv${family}: a datagram to the TUN's own network is refused with its header quoted`, () => {
    const { send } = memoryStack();
    const packet = udp(client, next, 5000, 9999, Buffer.alloc(1400));
    const [answer] = send(packet);
    const { source, destination, protocol, transport, intact } = readPacket(answer!);
    assert.deepEqual([source, destination, intact], [next, client, true]);
    assert.deepEqual([protocol, transport[0], transport[1]], family === 4 ? [1, 3, 3] : [58, 1, 4]);
    assert.equal(answer!.length, family === 4 ? 576 : 1280);
    assert.deepEqual(transport.subarray(8), packet.subarray(0, transport.length - 8));
  });

  test(`IPv${family}: a client whose datagrams a rule refuses gets an ICMP error for the destination it wrote to`, () => {
    const { send, opened, device } = memoryStack();
    send(udp(client, far, 5000, 7000));
    const [{ flow, destination }] = opened as [Opened];
    device.written.length = 0;
    flow.refuse?.(destination);
    flow.refuse?.({
      ...destination,
      ip: family === 4 ? FAMILIES[6].far : (FAMILIES[4].far as Ip),
    } as Destination);
    assert.equal(device.written.length, 1, "no packet can name a host of the other family");
    const told = readPacket(device.written[0]!.subarray(10));
    assert.deepEqual([told.source, told.destination, told.intact], [far, client, true]);
    assert.deepEqual(
      [told.protocol, told.transport[0], told.transport[1]],
      family === 4 ? [1, 3, 3] : [58, 1, 4],
    );
    const about = readPacket(told.transport.subarray(8));
    assert.deepEqual([about.source, about.destination, about.protocol], [client, far, 17]);
    assert.deepEqual([about.transport.readUInt16BE(0), about.transport.readUInt16BE(2)], [5000, 7000]);
  });

  test(`IPv${family}: a ping to the next address is answered, others are asked about, replies are dropped`, () => {
    const { send, echoes } = memoryStack();
    const [answer] = send(echo(client, next));
    const { source, destination, intact, transport } = readPacket(answer!);
    assert.deepEqual(
      [source, destination, intact, transport[0]],
      [next, client, true, family === 4 ? 0 : 129],
    );
    assert.deepEqual(transport.subarray(4), Buffer.from([0, 7, 0, 1, 1, 2, 3]));
    assert.deepEqual(send(echo(client, far)), []);
    assert.equal(echoes.length, 1);
    const reply = echo(client, far);
    reply[family === 4 ? 20 : 40] = 0;
    send(reply);
    assert.equal(echoes.length, 1);
  });
}

/** What the kernel does with a checksum that was left to it. */
function finishChecksum(frame: Buffer): void {
  if (frame[0] !== 1) return;
  const start = frame.readUInt16LE(6);
  const offset = frame.readUInt16LE(8);
  const body = frame.subarray(10 + start);
  body.writeUInt16BE(0xffff - onesSum(body) || 0xffff, offset);
  frame.fill(0, 0, 10);
}

/** Puts fragments together again, which are no longer than this. Offsets of IPv6 are in a header of their own. */
function joined(frames: readonly Buffer[], family: 4 | 6, mtu: number): Buffer {
  const pieces = frames.map((frame) => {
    const packet = frame.subarray(10);
    assert.ok(packet.length <= mtu, `${packet.length} bytes`);
    if (family === 4) {
      const { transport, fragmentAt, moreFragments, intact } = readPacket(packet);
      assert.ok(intact);
      return { data: transport, from: fragmentAt, isLast: !moreFragments };
    }
    assert.deepEqual([packet[6], packet[40], packet.readUInt16BE(4)], [44, 17, packet.length - 40]);
    const place = packet.readUInt16BE(42);
    return { data: packet.subarray(48), from: place & 0xfff8, isLast: (place & 1) === 0 };
  });
  assert.deepEqual(
    pieces.map(({ isLast }) => isLast),
    pieces.map((_, at) => at === pieces.length - 1),
  );
  const whole = Buffer.alloc(pieces.reduce((sum, { data }) => sum + data.length, 0));
  for (const { data, from } of pieces) whole.set(data, from);
  return whole;
}

for (const family of [4, 6] as const)
  test(`IPv${family}: a reply longer than the MTU goes in fragments, one longer than a packet not at all`, () => {
    const { send, opened, device } = memoryStack();
    const { client, far } = FAMILIES[family];
    send(udp(client, far, 5000, 7000));
    const [{ flow, destination }] = opened as [Opened];
    const payload = Buffer.from(Array.from({ length: 60_001 }, (_, at) => at % 251));
    device.written.length = 0;
    flow.send({ payload, destination });
    const whole = joined(device.written, family, MTU);
    assert.ok(whole.subarray(8).equals(payload));
    const pseudo = pseudoHeader(addressBytes(far), addressBytes(client), 17, whole.length);
    assert.equal(onesSum(pseudo, whole), 0xffff);
    device.written.length = 0;
    const other = FAMILIES[family === 4 ? 6 : 4].far as Ip;
    flow.send({ payload: Buffer.alloc(65_508), destination });
    flow.send({ payload, destination: { host: null, ip: other, port: 1 } }); // no address of the other family can reply
    flow.send({ payload, destination: { host: "a.test", ip: null, port: 1 } });
    assert.equal(device.written.length, 0);
  });

/** What a hop says of a packet that is longer than `mtu`. */
function tooBig(about: Buffer, mtu: number): Buffer {
  const { source } = readPacket(about);
  const v6 = source.includes(":");
  const head = Buffer.from(
    v6 ? [2, 0, 0, 0, 0, 0, mtu >> 8, mtu & 0xff] : [3, 4, 0, 0, 0, 0, mtu >> 8, mtu & 0xff],
  );
  const transport = Buffer.concat([head, about.subarray(0, v6 ? 1200 : 28)]);
  return ipPacket({
    source: FAMILIES[v6 ? 6 : 4].other,
    destination: source,
    protocol: v6 ? 58 : 1,
    transport,
  });
}

for (const family of [4, 6] as const) {
  const { client, far, own, next, other } = FAMILIES[family];
  const headers = family === 4 ? 40 : 60;

  test(`IPv${family}: segments to a client behind a narrow hop are cut to what it takes, for ten minutes`, () => {
    const { send, stack, clock, device } = memoryStack();
    const natPort = (from: string, port: number): number => {
      const [there] = send(tcp(from, far, { sourcePort: port, destinationPort: 443, flags: SYN }));
      return readPacket(there!).transport.readUInt16BE(0);
    };
    const [narrow, wide] = [natPort(client, 40_000), natPort(other, 40_000)];
    const payload = Buffer.alloc(1400, "weir");
    const answer = (port: number, bytes = payload, header?: Buffer): Buffer => {
      send(tcp(own, next, { sourcePort: PORT, destinationPort: port, flags: ACK, payload: bytes }), header);
      return device.written[0]!;
    };
    const cutTo = (frame: Buffer) => (frame[1] === 0 ? null : frame.readUInt16LE(4));
    const whole = answer(narrow).subarray(10);
    const says = (mtu: number, about = whole) => assert.deepEqual(send(tooBig(about, mtu)), []);

    const unknown = { sourcePort: 443, destinationPort: 40_001, flags: ACK, payload };
    says(1300, tcp(far, client, unknown)); // no such flow
    const damaged = tooBig(whole, 1300);
    damaged.writeUInt8(7, damaged.length - 1);
    send(damaged);
    assert.equal(cutTo(answer(narrow)), null);

    says(1300);
    const frame = answer(narrow);
    assert.deepEqual([frame[1], cutTo(frame)], [family === 4 ? 1 : 4, 1300 - headers]);
    assert.deepEqual([frame.readUInt16LE(2), frame.readUInt16LE(6)], [headers, headers - 20]);
    finishChecksum(frame);
    const read = readPacket(frame.subarray(10));
    assert.deepEqual([read.source, read.destination, read.intact], [far, client, true]);
    assert.ok(read.transport.subarray(20).equals(payload));
    const run = Buffer.from("0100000000000000000000", "hex").subarray(0, 10);
    run[1] = family === 4 ? 0x81 : 0x84; // of segments, which may be marked for congestion
    run.writeUInt16LE(1448, 4);
    const cut = answer(narrow, Buffer.alloc(20_000), run);
    assert.deepEqual([cut[1], cutTo(cut)], [run[1], 1300 - headers]);
    assert.equal(cutTo(answer(narrow, Buffer.alloc(1300 - headers))), null);
    assert.equal(cutTo(answer(wide)), null);

    says(1400); // further on the way, or an old one
    assert.equal(cutTo(answer(narrow)), 1300 - headers);
    says(100);
    assert.equal(cutTo(answer(narrow)), (family === 4 ? 576 : 1280) - headers);
    clock.nowMs = 599_000;
    stack.tick();
    assert.notEqual(cutTo(answer(natPort(client, 40_000))), null);
    clock.nowMs = 600_000;
    stack.tick();
    assert.equal(cutTo(answer(natPort(client, 40_000))), null);
  });
}

test("datagrams of IPv6 to a client behind a narrow hop go in fragments, those of IPv4 are cut on the way", () => {
  for (const family of [4, 6] as const) {
    const { client, far } = FAMILIES[family];
    const { send, opened, device } = memoryStack();
    send(udp(client, far, 5000, 7000));
    const [{ flow, destination }] = opened as [Opened];
    const payload = Buffer.from(Array.from({ length: 1400 }, (_, at) => at % 251));
    const reply = (): readonly Buffer[] => {
      device.written.length = 0;
      flow.send({ payload, destination });
      return device.written.slice();
    };
    const [whole] = reply();
    send(tooBig(whole!.subarray(10), 1400));
    const pieces = reply();
    assert.equal(pieces.length, family === 4 ? 1 : 2);
    if (family === 4) continue;
    assert.ok(joined(pieces, 6, 1400).subarray(8).equals(payload));
    send(tooBig(pieces[0]!.subarray(10), 1300)); // a second hop says so of a fragment
    assert.ok(joined(reply(), 6, 1300).subarray(8).equals(payload));
  }
});

test("what goes to a loopback-address comes back", () => {
  const { send } = memoryStack();
  const [answer] = send(
    tcp(FAMILIES[4].client, "192.0.2.99", { sourcePort: 1, destinationPort: 2, flags: SYN }),
  );
  const { source, destination, intact, transport } = readPacket(answer!);
  assert.deepEqual([source, destination, intact], ["192.0.2.99", FAMILIES[4].client, true]);
  assert.equal(transport.readUInt16BE(0), 1);
});

test("addresses need a usable successor", () => {
  const at = (text: string, bits: number) =>
    tunAddress([{ ip: text as Ip, bits }], text.includes(":") ? 6 : 4);
  assert.equal(at("198.18.0.1", 30)?.next, "198.18.0.2");
  assert.equal(at("fdfe:dcba:9876::1", 126)?.next, "fdfe:dcba:9876::2");
  for (const [text, bits] of [
    ["198.18.0.2", 30],
    ["198.18.0.1", 32],
    ["10.0.0.255", 24],
    ["fd00::1", 128],
  ] as const)
    assert.throws(() => at(text, bits), /one more usable address/);
});
