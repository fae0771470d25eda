import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import fc from "fast-check";
import { ProtocolError } from "#core/errors.ts";
import type { Datagram, DatagramSession, Metadata, Session } from "#core/session.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { toDestination } from "#net/address/ip.ts";
import { acceptUdpOverTcp, clientFlow, magicDestination, versionOf } from "./index.ts";
import { encodePacket, encodeRequest, takePacket, takeRequest } from "./wire.ts";

const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
const DNS = toDestination("8.8.8.8", 53);
const ABC = Buffer.from("abc");

function queueOf(bytes: Uint8Array): ByteQueue {
  const queue = new ByteQueue();
  queue.push(Buffer.from(bytes));
  return queue;
}

test("the worked bytes", () => {
  assert.deepEqual(encodeRequest({ connect: false, destination: DNS }), hex("00 01 08080808 0035"));
  assert.deepEqual(encodeRequest({ connect: true, destination: DNS }), hex("01 01 08080808 0035"));
  assert.deepEqual(
    encodePacket({ payload: ABC, destination: DNS }, "host"),
    hex("00 08080808 0035 0003 616263"),
  );
  assert.deepEqual(encodePacket({ payload: ABC, destination: DNS }, "none"), hex("0003 616263"));
  assert.equal(versionOf(magicDestination(2)), 2);
  assert.equal(versionOf(magicDestination(1)), 1);
  assert.equal(versionOf(DNS), null);
});

test("every truncation waits, whatever the address", () => {
  for (const host of ["8.8.8.8", "2001:db8::1", "a.example"]) {
    const destination = toDestination(host, 99);
    const packet = encodePacket({ payload: ABC, destination }, "host");
    for (let size = 0; size < packet.length; size++)
      assert.equal(takePacket(queueOf(packet.subarray(0, size)), null), null);
    const got = takePacket(queueOf(packet), null);
    assert.deepEqual(got, { payload: ABC, destination });
    const request = encodeRequest({ connect: true, destination });
    for (let size = 0; size < request.length; size++)
      assert.equal(takeRequest(queueOf(request.subarray(0, size))), null);
  }
  assert.equal(takePacket(queueOf(hex("0000")), DNS)?.payload.length, 0);
});

test("random bytes: a datagram, a wait or ProtocolError", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      for (const take of [takeRequest, (queue: ByteQueue) => takePacket(queue, null)]) {
        try {
          take(queueOf(bytes));
        } catch (error) {
          assert.ok(error instanceof ProtocolError);
        }
      }
    }),
  );
});

for (const version of [1, 2] as const) {
  test(`version ${version}: datagrams both ways, and the end`, async () => {
    const [near, far] = duplexPair();
    const client = clientFlow(near, version, DNS);
    const accepted = Promise.withResolvers<Session>();
    const metadata = (destination: unknown) => ({ destination }) as Metadata;
    const serving = acceptUdpOverTcp(far, version, metadata, accepted.resolve);
    const toClient = Promise.withResolvers<Datagram>();
    client.receive(toClient.resolve);
    client.send({ payload: ABC, destination: DNS });
    const { flow, metadata: told } = (await accepted.promise) as DatagramSession;
    await serving;
    assert.deepEqual(told.destination, DNS);
    const toServer = Promise.withResolvers<Datagram>();
    flow.receive(toServer.resolve);
    assert.deepEqual(await toServer.promise, { payload: ABC, destination: DNS });
    flow.send({ payload: Buffer.from("re"), destination: toDestination("::1", 5) });
    assert.deepEqual(await toClient.promise, {
      payload: Buffer.from("re"),
      destination: toDestination("::1", 5),
    });
    await client[Symbol.asyncDispose]();
    await flow.closed;
  });
}

test("a malformed stream costs the stream", async () => {
  const [near, far] = duplexPair();
  const flow = clientFlow(near, 2, DNS);
  flow.receive(() => assert.fail("nothing should come"));
  far.write(hex("09 00 00"));
  far.on("error", () => {});
  await flow.closed;
});
