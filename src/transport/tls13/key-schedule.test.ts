import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { cipherSuite } from "./cipher-suites.ts";
import {
  expandLabel,
  finishedData,
  KeySchedule,
  ticketSecret,
  trafficIv,
  trafficKey,
} from "./key-schedule.ts";
import { RecordOpener, RecordSealer } from "./records.ts";
import { Transcript } from "./transcript.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");
const AES_128 = cipherSuite(0x1301) ?? assert.fail();

// RFC 8448 §3, "Simple 1-RTT Handshake".
const CLIENT_HELLO = hex(`
  010000c00303cb34ecb1e78163ba1c38c6dacb196a6dffa21a8d9912ec18a2ef6283024dece7000006130113031302010000910000000b
  0009000006736572766572ff01000100000a00140012001d0017001800190100010101020103010400230000003300260024001d002099
  381de560e4bd43d23d8e435a7dbafeb3c06e51c13cae4d5413691e529aaf2c002b0003020304000d0020001e0403050306030203080408
  05080604010501060102010402050206020202002d00020101001c00024001`);
const SERVER_HELLO = hex(`
  020000560303a6af06a4121860dc5e6e60249cd34c95930c8ac5cb1434dac155772ed3e2692800130100002e00330024001d0020c98288
  76112095fe66762bdbf7c672e156d6cc253b833df1dd69b1b04e751f0f002b00020304`);
const SHARED = hex("8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d");
const CLIENT_HANDSHAKE = hex("b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21");
const SERVER_HANDSHAKE = hex("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38");
const TO_SERVER_FINISHED = hex("9608102a0f1ccc6db6250b7b7e417b1a000eaada3daae4777a7686c9ff83df13");
const CLIENT_APPLICATION = hex("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5");
const CLIENT_FINISHED = hex("a8ec436d677634ae525ac1fcebe11a039ec17694fac6e98527b642f2edd5ce61");

test("secrets of the trace of RFC 8448 §3", () => {
  const transcript = new Transcript();
  transcript.add(CLIENT_HELLO);
  transcript.choose(AES_128);
  transcript.add(SERVER_HELLO);
  const hash = transcript.digest();
  assert.deepEqual(hash, hex("860c06edc07858ee8e78f0e7428c58edd6b43f2ca3e6e95f02ed063cf0e1cad8"));
  const schedule = new KeySchedule(AES_128);
  const handshake = schedule.handshakeSecrets(SHARED, hash);
  assert.deepEqual(handshake.client, CLIENT_HANDSHAKE);
  assert.deepEqual(handshake.server, SERVER_HANDSHAKE);
  assert.deepEqual(trafficKey(AES_128, handshake.server), hex("3fce516009c21727d0f2e4e86ee403bc"));
  assert.deepEqual(trafficIv(AES_128, handshake.server), hex("5d313eb2671276ee13000b30"));
  const application = schedule.applicationSecrets(TO_SERVER_FINISHED);
  assert.deepEqual(application.client, CLIENT_APPLICATION);
  assert.deepEqual(
    application.server,
    hex("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"),
  );
  assert.deepEqual(finishedData(AES_128, CLIENT_HANDSHAKE, TO_SERVER_FINISHED), CLIENT_FINISHED);
});

for (const portable of [false, true])
  test(`records of the same trace, ${portable ? "node:crypto" : "the fastest way"}`, () => {
    const message = Buffer.concat([hex("14000020"), CLIENT_FINISHED]);
    const finished = hex(`
      170303003575ec4dc238cce60b298044a71e219c56cc77b0517fe9b93c7a4bfc44d87f38f80338ac98fc46deb384bd1caeacab6867d7
      26c40546`);
    using sealer = new RecordSealer(AES_128, CLIENT_HANDSHAKE, { portable });
    assert.deepEqual(sealer.seal(22, message), finished);
    using opener = new RecordOpener(AES_128, CLIENT_HANDSHAKE, { portable });
    const record = { type: 23, header: finished.subarray(0, 5), body: finished.subarray(5) };
    assert.deepEqual(opener.open(record), { type: 22, content: message });

    using data = new RecordSealer(AES_128, CLIENT_APPLICATION, { portable });
    assert.deepEqual(
      data.seal(23, Buffer.from(Array.from({ length: 50 }, (_, index) => index))),
      hex(`
        1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20441e2b62974e1f5a
        6292a2977014bd1e3deae63aeebb21694915e4`),
    );
  });

test("a retry replaces the first ClientHello by its hash", () => {
  const transcript = new Transcript();
  transcript.add(CLIENT_HELLO);
  transcript.restart(AES_128);
  transcript.add(SERVER_HELLO);
  const first = createHash("sha256").update(CLIENT_HELLO).digest();
  const expected = createHash("sha256").update(hex("fe000020")).update(first).update(SERVER_HELLO);
  assert.deepEqual(transcript.digest(), expected.digest());
});

test("an output longer than one block of the hash", () => {
  const long = expandLabel("sha256", SHARED, "key", Buffer.alloc(0), 70);
  assert.equal(long.length, 70);
  assert.notDeepEqual(long.subarray(0, 32), long.subarray(32, 64));
});

test("a ticket's secret and its binder in the trace of RFC 8448 §3 and §4", () => {
  const resumption = hex("7df235f2031d2a051287d02b0241b0bfdaf86cc856231f2d5aba46c434ec196c");
  const secret = hex("4ecd0eb6ec3b4d87f5d6028f922ca4c5851a277fd41311c9e62d2c9492e1c4f3");
  assert.deepEqual(ticketSecret(AES_128, resumption, hex("0000")), secret);
  const hello = hex("63224b2e4573f2d3454ca84b9d009a04f6be9e05711a8396473aefa01e924a14");
  assert.deepEqual(
    new KeySchedule(AES_128, secret).binder(hello),
    hex("3add4fb2d8fdf822a0ca3cf7678ef5e88dae990141c5924d57bb6fa31b9e5f9d"),
  );
});
