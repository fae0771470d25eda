import assert from "node:assert/strict";
import { createCipheriv, randomBytes } from "node:crypto";
import { test } from "node:test";
import { hchacha20 } from "#protocols/crypto/hchacha20.ts";
import { Initiation, type Partner, ReceivedInitiation } from "./handshake.ts";
import { IncomingMacs, OutgoingMacs } from "./macs.ts";
import { COOKIE_AT, COOKIE_NONCE_AT, macsAt, typeOf } from "./messages.ts";
import { agree, generatePair, hash, type KeyPair, mac } from "./primitives.ts";
import { MAC_BYTES } from "./sizes.ts";
import { Timestamps } from "./timestamp.ts";

const SECOND_MS = 1000;

function partnerOf(own: KeyPair, { publicKey }: KeyPair, presharedKey = Buffer.alloc(32)): Partner {
  const shared = agree(own, publicKey);
  assert.ok(shared !== null);
  return { publicKey, presharedKey, shared };
}

function begin(own: KeyPair, partner: Partner): Initiation {
  const initiation = Initiation.begin(own, partner, 7, new Timestamps(Date.now).next());
  assert.ok(initiation !== null);
  return initiation;
}

test("both sides end with the same keys, the one's for sending being the other's for receiving", () => {
  const [client, server, presharedKey] = [generatePair(), generatePair(), randomBytes(32)];
  const initiation = begin(client, partnerOf(client, server, presharedKey));
  const received = ReceivedInitiation.read(server, initiation.message);
  assert.deepEqual(received?.publicKey, client.publicKey);
  const partner = partnerOf(server, client, presharedKey);
  assert.ok(received?.timestampOf(partner)?.length === 12);
  const answer = received.answer(partner, 9);
  const keys = answer && initiation.finish(answer.message);
  assert.ok(answer !== null && keys !== null);
  assert.deepEqual(keys.sending, answer.keys.receiving);
  assert.deepEqual(keys.receiving, answer.keys.sending);
  assert.notDeepEqual(keys.sending, keys.receiving);
  assert.deepEqual([keys.localIndex, keys.remoteIndex, answer.keys.remoteIndex], [7, 9, 7]);
});

test("another preshared key, another server and a changed message end without keys", () => {
  const [client, server] = [generatePair(), generatePair()];
  const initiation = begin(client, partnerOf(client, server));
  assert.equal(ReceivedInitiation.read(generatePair(), initiation.message), null);
  for (const at of [10, 50, 100]) {
    const changed = Buffer.from(initiation.message);
    changed[at] = (changed[at] ?? 0) ^ 1;
    const read = ReceivedInitiation.read(server, changed);
    assert.ok(read === null || read.timestampOf(partnerOf(server, client)) === null, `${at}`);
  }
  const received = ReceivedInitiation.read(server, initiation.message);
  const other = partnerOf(server, client, randomBytes(32));
  assert.equal(received?.timestampOf(other)?.length, 12);
  const answer = received?.answer(other, 9);
  assert.ok(answer);
  assert.equal(initiation.finish(answer.message), null);
});

test("a response that fits no longer waits in the way of one that does", () => {
  const [client, server] = [generatePair(), generatePair()];
  const initiation = begin(client, partnerOf(client, server));
  const received = ReceivedInitiation.read(server, initiation.message);
  const partner = partnerOf(server, client);
  assert.equal(received?.timestampOf(partner)?.length, 12);
  const answer = received?.answer(partner, 9);
  assert.ok(answer);
  const forged = Buffer.from(answer.message);
  forged[20] = (forged[20] ?? 0) ^ 1;
  assert.equal(initiation.finish(forged), null);
  assert.ok(initiation.finish(answer.message) !== null);
});

test("a key of small order has no secret", () => {
  assert.equal(agree(generatePair(), Buffer.alloc(32)), null);
});

test("timestamps grow, also where the clock goes back", () => {
  let nowMs = Date.UTC(2026, 0, 1);
  const timestamps = new Timestamps(() => nowMs);
  const first = timestamps.next();
  assert.equal(first.toString("hex"), "400000006955b90a00000000");
  const seen = [first, timestamps.next()];
  nowMs -= 5 * SECOND_MS;
  seen.push(timestamps.next());
  nowMs += 10 * SECOND_MS;
  seen.push(timestamps.next());
  assert.deepEqual(
    seen,
    seen.toSorted((left, right) => left.compare(right)),
  );
  assert.equal(new Set(seen.map((bytes) => bytes.toString("hex"))).size, seen.length);
});

test("the first MAC says that a message is for us, the second one shows a cookie", () => {
  const [client, server] = [generatePair(), generatePair()];
  const macs = new OutgoingMacs(server.publicKey);
  const { message } = begin(client, partnerOf(client, server));
  macs.sign(message, 0);
  const start = macsAt(message);
  const first = Buffer.from(message.subarray(start, start + MAC_BYTES));
  assert.ok(new IncomingMacs(server.publicKey).isRight(message));
  assert.ok(!new IncomingMacs(client.publicKey).isRight(message));
  assert.deepEqual(message.subarray(start + MAC_BYTES), Buffer.alloc(MAC_BYTES));

  const cookie = randomBytes(16);
  macs.takeCookie(cookieReply(server, cookie, randomBytes(16)), 0); // to another message: ignored
  macs.sign(message, 0);
  assert.deepEqual(message.subarray(start + MAC_BYTES), Buffer.alloc(MAC_BYTES));
  const reply = cookieReply(server, cookie, first);
  assert.equal(typeOf(reply), 3);
  macs.takeCookie(reply, 0);
  macs.sign(message, 114 * SECOND_MS);
  assert.deepEqual(message.subarray(start + MAC_BYTES), mac(cookie, message.subarray(0, start + MAC_BYTES)));
  message.fill(0, start);
  macs.sign(message, 121 * SECOND_MS); // it is of no use by now
  assert.deepEqual(message.subarray(start + MAC_BYTES), Buffer.alloc(MAC_BYTES));
});

/** What a server under load answers. */
function cookieReply({ publicKey }: KeyPair, cookie: Buffer, mac1: Buffer): Buffer {
  const nonce = randomBytes(24);
  const key = hchacha20(hash("cookie--", publicKey), nonce.subarray(0, 16));
  const rest = Buffer.concat([Buffer.alloc(4), nonce.subarray(16)]);
  const cipher = createCipheriv("chacha20-poly1305", key, rest, { authTagLength: 16 });
  cipher.setAAD(mac1, { plaintextLength: cookie.length });
  const sealed = Buffer.concat([cipher.update(cookie), cipher.final(), cipher.getAuthTag()]);
  const reply = Buffer.alloc(64);
  reply.writeUInt32LE(3, 0);
  reply.set(nonce, COOKIE_NONCE_AT);
  reply.set(sealed, COOKIE_AT);
  return reply;
}
