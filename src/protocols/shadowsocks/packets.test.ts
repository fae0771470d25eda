import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Endpoint, Ip } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { clientPackets } from "./client-packets.ts";
import { packetIdentities } from "./identity.ts";
import { CipherMemory } from "./memory.ts";
import { findMethod, masterKey, METHOD_NAMES, type Method, preSharedKeys } from "./methods.ts";
import { sealPacket004 } from "./packet004.ts";
import { bodyAead, encodeBody, sealPacket022 } from "./packet022.ts";
import { openRequest, type PeerSession } from "./server-packets.ts";
import { serverKeys } from "./server-keys.ts";

/** Older than every packet of these tests. */
const MEMORY = new CipherMemory();
const hex = (text: string) => Buffer.from(text, "hex");
const method = (name: string) => findMethod(name) as Method;
const DNS = toDestination("8.8.8.8", 53);
const ABC = Buffer.from("abc");
const SOURCE: Endpoint = { ip: "127.0.0.1" as Ip, port: 9 };
const PSK = hex("00112233445566778899aabbccddeeff");

test("published values: aes-128-gcm", () => {
  const aes = method("aes-128-gcm");
  const body = Buffer.concat([encodeSocksAddress(DNS), ABC]);
  const salt = hex("000102030405060708090a0b0c0d0e0f");
  assert.deepEqual(
    sealPacket004(aes, masterKey(aes, "test"), body, salt),
    hex("000102030405060708090a0b0c0d0e0fc554880ecb271d9996e2cf0abfa92f9c7263e4e7cf6182e89eec"),
  );
});

test("published values: 2022-blake3-aes-128-gcm, and the identity block", () => {
  const aes = method("2022-blake3-aes-128-gcm");
  const session = hex("a0a1a2a3a4a5a6a7");
  const header = Buffer.concat([session, Buffer.alloc(8)]);
  const nowMs = 1700000000_000;
  const body = encodeBody({
    nowMs,
    clientSession: null,
    padding: Buffer.alloc(0),
    destination: DNS,
    payload: ABC,
  });
  assert.deepEqual(
    sealPacket022(aes, [PSK], bodyAead(aes, PSK, session), header, body),
    hex(
      "032ad97e73f0f599bcaf4ada5fa536932bd75e685fcbdf9b19a0875efc0cc5464ddc912d763ab4c6811b31e11d3a3d0f183650e041",
    ),
  );
  const user = hex("ffeeddccbbaa99887766554433221100");
  assert.equal(packetIdentities([PSK, user], header).toString("hex"), "586611256ed7e95dd24b885f02d8cd6f");
});

function setting(name: string, multi = false) {
  const found = method(name);
  const key = (fill: number) => Buffer.alloc(found.keyBytes, fill).toString("base64");
  const modern = found.edition === "2022";
  const password = modern ? (multi ? `${key(1)}:${key(2)}` : key(1)) : multi ? "secret" : "other";
  const users = multi ? [{ id: "ada", credential: modern ? key(2) : "secret", flow: null }] : null;
  const keys = modern ? preSharedKeys(found, password) : [masterKey(found, password)];
  return {
    found,
    keys,
    client: clientPackets(found, keys, Date.now),
    server: serverKeys(found, modern ? key(1) : password, users),
  };
}

for (const name of METHOD_NAMES) {
  describe(name, () => {
    test("there and back, one session", () => {
      const { client, server } = setting(name);
      const sessions = new Map<string, PeerSession>();
      const find = (key: string) => sessions.get(key);
      for (const text of ["one", "two", ""]) {
        const item = { payload: Buffer.from(text), destination: DNS };
        const got = openRequest(server, client.seal(item), SOURCE, find, Date.now, MEMORY);
        assert.deepEqual(got?.item, item);
        sessions.set(got?.session.key as string, got?.session as PeerSession);
        assert.deepEqual(client.open(got?.session.seal(item) as Buffer), item);
      }
      assert.equal(sessions.size, 1);
    });

    if (method(name).edition === "stream")
      test("an unauthenticated packet: IV alone is dropped, noise throws nothing", () => {
        const { client, server } = setting(name);
        const open = (bytes: Buffer) => openRequest(server, bytes, SOURCE, () => undefined, Date.now, MEMORY);
        for (const size of [0, 1, 8]) assert.equal(open(Buffer.alloc(size)), null);
        fc.assert(
          fc.property(fc.uint8Array({ maxLength: 120 }), (noise) => {
            for (const got of [open(Buffer.from(noise))?.item ?? null, client.open(Buffer.from(noise))])
              assert.ok(got === null || got.payload.length < noise.length);
          }),
        );
      });

    test("truncations, changed bits and noise are dropped", () => {
      const { client, server } = setting(name);
      if (server.method.edition === "plain" || server.method.edition === "stream") return;
      const packet = client.seal({ payload: ABC, destination: DNS });
      const open = (bytes: Buffer) => openRequest(server, bytes, SOURCE, () => undefined, Date.now, MEMORY);
      for (let size = 0; size < packet.length; size++) assert.equal(open(packet.subarray(0, size)), null);
      const reply = open(packet)?.session.seal({ payload: ABC, destination: DNS }) as Buffer;
      for (const [bytes, opener] of [
        [packet, open],
        [reply, client.open.bind(client)],
      ] as const) {
        for (let at = 0; at < Math.min(bytes.length, 200); at++) {
          const changed = Buffer.from(bytes);
          changed[at] = (changed[at] as number) ^ 0x10;
          assert.equal(opener(changed), null);
        }
      }
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 120 }), (noise) => {
          assert.equal(open(Buffer.from(noise)), null);
          assert.equal(client.open(Buffer.from(noise)), null);
        }),
      );
    });
  });
}

for (const name of ["aes-256-gcm", "2022-blake3-aes-128-gcm", "2022-blake3-aes-256-gcm"]) {
  test(`${name}: the user is known by the key`, () => {
    const { client, server } = setting(name, true);
    const got = openRequest(
      server,
      client.seal({ payload: ABC, destination: DNS }),
      SOURCE,
      () => undefined,
      Date.now,
      MEMORY,
    );
    assert.equal(got?.session.user, "ada");
    assert.deepEqual(
      client.open(got?.session.seal({ payload: ABC, destination: DNS }) as Buffer)?.payload,
      ABC,
    );
    const unknownClient = setting(name).client;
    assert.equal(
      openRequest(
        server,
        unknownClient.seal({ payload: ABC, destination: DNS }),
        SOURCE,
        () => undefined,
        Date.now,
        MEMORY,
      ),
      null,
    );
  });
}

test("2022: a packet is good once, and replies from a third server session within a minute are dropped", () => {
  const { client, server, found, keys } = setting("2022-blake3-aes-128-gcm");
  const packet = client.seal({ payload: ABC, destination: DNS });
  const first = openRequest(server, packet, SOURCE, () => undefined, Date.now, MEMORY) as {
    session: PeerSession;
  };
  assert.equal(
    openRequest(server, packet, SOURCE, () => first.session, Date.now, MEMORY),
    null,
  );
  const next = client.seal({ payload: ABC, destination: DNS });
  const reply = () =>
    (
      openRequest(server, next, SOURCE, () => undefined, Date.now, MEMORY) as {
        session: PeerSession;
      }
    ).session.seal({
      payload: ABC,
      destination: DNS,
    });
  const once = reply();
  assert.notEqual(client.open(once), null);
  assert.equal(client.open(once), null);
  assert.notEqual(client.open(reply()), null);
  assert.equal(client.open(reply()), null);
  assert.equal(clientPackets(found, keys, Date.now).open(reply()), null); // belongs to another client session
});
