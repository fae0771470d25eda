import assert from "node:assert/strict";
import {
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  X509Certificate,
} from "node:crypto";
import { test } from "node:test";
import { makeCertificate } from "../../../test/support/certificate.ts";
import { connection13, type Dial13Options } from "../../../test/support/tls13-dial.ts";
import { PeerAlert, TlsFault } from "./alerts.ts";
import type { ClientConnection } from "./client-connection.ts";
import { readEchConfigs } from "./ech/config.ts";
import { configsOfKeys, generateEchKeyPair, parseEchKeys } from "./ech/keys.ts";
import { hideHello } from "./ech/offer.ts";
import { EXTENSION } from "./extensions.ts";
import { buildHello } from "./fingerprints/build-hello.ts";
import { CHROME_133 } from "./fingerprints/chrome.ts";
import { type ExtensionTemplate, list16, list8, shares } from "./fingerprints/template.ts";
import { encodeMessage, MESSAGE } from "./handshake-messages.ts";
import { decodeClientHello, encodeClientHello } from "./hello-messages.ts";
import type { ClientHelloMessage } from "./offered-hello.ts";
import { plainRecord, RECORD } from "./records.ts";
import { ServerConnection } from "./server-connection.ts";
import type { ServerHandshakeOptions } from "./server-handshake.ts";

const { cert, key } = makeCertificate({ names: ["public.test"] });
const chain = [new X509Certificate(cert).raw];
const pem = generateEchKeyPair("public.test").key;
const retryConfigs = configsOfKeys(pem);
const [config = assert.fail()] = readEchConfigs(retryConfigs);
const options: ServerHandshakeOptions = {
  identity: { chain, key: createPrivateKey(key) },
  protocols: ["h2", "http/1.1"],
  echKeys: parseEchKeys(pem, "test"),
  retryConfigs,
};

const hello = (extensions = CHROME_133.extensions): ClientHelloMessage =>
  buildHello({ ...CHROME_133, extensions }, { serverName: "public.test", protocols: null });
const changed = (change: (one: ExtensionTemplate) => ExtensionTemplate) =>
  hello(CHROME_133.extensions.map(change));

/** What a connection says when it is given these bytes: its output, then how it goes on. */
function give(connection: ServerConnection | ClientConnection, bytes: Buffer | null): Buffer | null {
  if (bytes !== null) connection.feed(bytes);
  assert.equal(connection.read(), null);
  return connection.takeOutput();
}

function outcome(connection: ServerConnection, bytes: Buffer): string | null {
  try {
    give(connection, bytes);
    return connection.isSecure ? "secure" : null;
  } catch (error) {
    if (error instanceof PeerAlert) return "alert of the client";
    assert.ok(error instanceof TlsFault, String(error));
    assert.ok(connection.takeOutput() !== null, "the client is told");
    return error.alert;
  }
}

/** Both sides, until neither has anything to say. */
function shakeHands(dial: Dial13Options = {}, serving: Partial<ServerHandshakeOptions> = {}) {
  const server = new ServerConnection({ ...options, ...serving });
  const client = connection13(dial);
  client.start();
  let said = client.takeOutput();
  while (said !== null) {
    const answer = give(server, said);
    said = answer === null ? null : give(client, answer);
  }
  return { server, client };
}

const record = (message: Buffer): Buffer => plainRecord(RECORD.handshake, message);

for (const hides of [true, false])
  for (const asks of [true, false])
    test(`a good handshake: ${hides ? "hidden" : "seen"}, ${asks ? "with" : "without"} a retry; payload goes both ways`, () => {
      const cover = asks ? changed((one) => (one.kind === "shares" ? shares("grease") : one)) : hello();
      const { server, client } = shakeHands({ hello: hides ? hideHello(cover, config, "real.test") : cover });
      assert.deepEqual([server.isSecure, client.isSecure, server.isHidden], [true, true, hides]);
      assert.deepEqual(
        [server.choice?.serverName, server.choice?.alpn, client.agreement?.alpn],
        [hides ? "real.test" : "public.test", "h2", "h2"],
      );
      server.feed(client.write(Buffer.from("up")));
      client.feed(server.write(Buffer.from("down")));
      assert.deepEqual([String(server.read()), String(client.read())], ["up", "down"]);
      server.feed(client.end());
      assert.equal(server.read(), null);
      assert.equal(server.hasEnded, true);
    });

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const ed25519 = generateKeyPairSync("ed25519").privateKey;

test("keys of every kind sign as the client can check; a key that fits no scheme is an alert", () => {
  const signs = (other: KeyObject): string | null => {
    const server = new ServerConnection({ ...options, identity: { chain, key: other } });
    return outcome(server, record(hello().message));
  };
  assert.equal(signs(rsa), null);
  assert.equal(signs(ed25519), "handshake_failure", "Chrome has no Ed25519");
});

test("what both sides do not have in common is an alert of its own", () => {
  const say = (said: ClientHelloMessage, serving: Partial<ServerHandshakeOptions> = {}): string | null =>
    outcome(new ServerConnection({ ...options, ...serving }), record(said.message));
  const list = (type: number, ...values: number[]) =>
    changed((one) =>
      one.kind === "list" && one.type === type
        ? (type === EXTENSION.supportedVersions ? list8 : list16)(type, ...values)
        : one,
    );
  assert.equal(say(list(EXTENSION.supportedVersions, 0x0303)), "protocol_version");
  assert.equal(say(list(EXTENSION.supportedGroups, 0x0100)), "handshake_failure");
  assert.equal(say(list(EXTENSION.signatureAlgorithms, 0x0401)), "handshake_failure");
  assert.equal(say(hello(), { protocols: ["spdy"] }), "no_application_protocol");
  assert.equal(say(hello(), { protocols: [] }), null);
  const without = (type: number): ClientHelloMessage => {
    const plain = decodeClientHello(hello().message.subarray(4));
    const extensions = new Map([...plain.extensions].filter(([one]) => one !== type));
    const message = encodeMessage(MESSAGE.clientHello, encodeClientHello({ ...plain, extensions }));
    return { ...hello(), message };
  };
  for (const type of [EXTENSION.keyShare, EXTENSION.supportedGroups, EXTENSION.signatureAlgorithms])
    assert.equal(say(without(type)), "missing_extension");
  const plain = decodeClientHello(hello().message.subarray(4));
  const old = encodeMessage(MESSAGE.clientHello, encodeClientHello({ ...plain, suites: [0xc02f] }));
  assert.equal(say({ ...hello(), message: old }), "handshake_failure");
});

test("messages out of their order, doubled, or of the wrong kind", () => {
  const first = record(hello().message);
  const server = () => new ServerConnection(options);
  assert.equal(
    outcome(server(), record(encodeMessage(MESSAGE.finished, Buffer.alloc(32)))),
    "unexpected_message",
  );
  assert.equal(outcome(server(), Buffer.concat([first, first])), "unexpected_message");
  assert.equal(
    outcome(server(), plainRecord(RECORD.applicationData, Buffer.alloc(30))),
    "unexpected_message",
  );
  const noise = Buffer.concat([first, plainRecord(RECORD.applicationData, randomBytes(60))]);
  assert.equal(outcome(server(), noise), "bad_record_mac");
  const both = plainRecord(RECORD.handshake, Buffer.concat([hello().message, Buffer.of(20, 0, 0)]));
  assert.equal(outcome(server(), both), "unexpected_message", "bytes behind the end of a key");
  assert.equal(outcome(server(), plainRecord(RECORD.alert, Buffer.of(2, 40))), "alert of the client");
});

test("a Finished that does not fit ends it, and no payload is given before", () => {
  const server = new ServerConnection(options);
  const client = connection13({ hello: hello() });
  client.start();
  const answer = give(server, client.takeOutput());
  const said = give(client, answer) ?? assert.fail();
  const flipped = Buffer.from(said);
  flipped[flipped.length - 1] = (flipped.at(-1) ?? 0) ^ 1;
  assert.throws(() => server.write(Buffer.from("early")));
  assert.equal(outcome(server, flipped), "bad_record_mac");
});

test("the hello behind a retry must have what was asked for, and stay hidden", () => {
  const cover = changed((one) => (one.kind === "shares" ? shares("grease") : one));
  const retried = (said: ClientHelloMessage, second: Buffer): string | null => {
    const server = new ServerConnection(options);
    assert.ok(give(server, record(said.message)) !== null);
    return outcome(server, record(second));
  };
  const hidden = hideHello(cover, config, "real.test");
  assert.equal(retried(cover, cover.message), "illegal_parameter", "the same hello again");
  assert.equal(retried(hidden, hidden.message), "illegal_parameter", "sealed by a new key");
  assert.equal(retried(hidden, hello().message), "illegal_parameter", "an invented one");
  const open = hello(CHROME_133.extensions.filter(({ kind }) => kind !== "ech"));
  assert.equal(retried(hidden, open.message), "missing_extension");
});

test("a rejected hello is told the configurations, an invented one too; who has none is told nothing", () => {
  const other = readEchConfigs(configsOfKeys(generateEchKeyPair("public.test").key));
  const [stale = assert.fail()] = other;
  const { server, client } = shakeHands({ hello: hello() });
  assert.deepEqual(client.agreement?.extensions.get(EXTENSION.encryptedClientHello), retryConfigs);
  assert.equal(server.isSecure, true);
  assert.throws(
    () => shakeHands({ hello: hideHello(hello(), stale, "real.test") }),
    (error: Error & { retryConfigs?: Buffer }) => error.retryConfigs?.equals(retryConfigs) === true,
  );
  const without = hello(CHROME_133.extensions.filter(({ kind }) => kind !== "ech"));
  const plain = shakeHands({ hello: without }).client;
  assert.equal(plain.agreement?.extensions.has(EXTENSION.encryptedClientHello), false);
});

test("every cut of a hello is refused; byte by byte it is as good as whole", () => {
  const { message } = hideHello(hello(), config, "real.test");
  for (let size = 4; size < message.length; size += 9) {
    const cut = Buffer.from(message.subarray(0, size));
    cut.writeUIntBE(size - 4, 1, 3);
    assert.match(
      outcome(new ServerConnection(options), record(cut)) ?? "none",
      /decode_error|illegal_parameter/,
    );
  }
  const server = new ServerConnection(options);
  const bytes = record(message);
  for (let at = 0; at < bytes.length; at++) assert.equal(outcome(server, bytes.subarray(at, at + 1)), null);
  assert.equal(server.isHidden, true);
  for (let left = 300; left > 0; left--) {
    const noise = randomBytes(1 + (left % 90));
    outcome(new ServerConnection(options), record(encodeMessage(MESSAGE.clientHello, noise)));
  }
});
