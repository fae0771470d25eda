/** Encrypted ClientHello between our own two sides, and what other clients get from a listener that has it. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { describe, test } from "node:test";
import { connect } from "node:tls";
import type { SafeFiles } from "#core/files.ts";
import { type Log, SILENT } from "#core/log.ts";
import { CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { list16, shares } from "#transport/tls13/fingerprints/template.ts";
import { encodeEchConfig, encodeEchConfigs, readEchConfigs } from "#transport/tls13/ech/config.ts";
import { generateEchKeyPair } from "#transport/tls13/ech/keys.ts";
import { hideHello } from "#transport/tls13/ech/offer.ts";
import { plainRecord, RECORD } from "#transport/tls13/records.ts";
import { checkEcho, dialWithEch, listenWithEch, ofReal, own, PUBLIC, REAL } from "../support/ech-world.ts";
import { nativeTls } from "../support/native-tls.ts";
import { textFiles } from "../support/text-files.ts";
import { dial13 } from "../support/tls13-dial.ts";
import { until } from "../support/until.ts";

const pair = generateEchKeyPair(PUBLIC);
const later = generateEchKeyPair(PUBLIC);
const ech = (config: string) => ({ "ech-opts": { enable: true, config } });

function warnings(): { readonly log: Log; readonly said: string[] } {
  const said: string[] = [];
  return { said, log: { ...SILENT, warning: (text) => void said.push(String(text)) } };
}

describe("Encrypted ClientHello", { skip: nativeTls === null && "needs FFI" }, () => {
  for (const browser of ["", "chrome", "firefox", "safari", "ios", "qq", "randomized", "none", "android"])
    test(`client-fingerprint "${browser}": the listener knows the name, the wire does not`, async () => {
      await using listener = await listenWithEch(pair.key);
      const node = { ...ech(pair.config), "client-fingerprint": browser };
      const { opened, wire } = await dialWithEch(listener.port, node);
      assert.deepEqual([wire.includes(PUBLIC), wire.includes(REAL)], [true, false]);
      assert.equal(opened.alpn, "h2");
      const { serverName, alpn } = await listener.accepted();
      assert.deepEqual([serverName, alpn], [REAL, "h2"]);
      await checkEcho(opened, randomBytes(300_000));
    });

  test("8 MiB each way", async () => {
    await using listener = await listenWithEch(pair.key);
    const { opened } = await dialWithEch(listener.port, ech(pair.config));
    await checkEcho(opened, randomBytes(8 << 20));
  });

  for (const hides of [true, false])
    test(`a hello without a share that fits is asked for another one, ${hides ? "the hidden one, too" : "and seen"}`, async () => {
      await using listener = await listenWithEch(pair.key);
      const template = {
        ...CHROME_133,
        extensions: CHROME_133.extensions.map((one) => {
          if (one.kind === "shares") return shares("grease");
          return one.kind === "list" && one.type === 10 ? list16(10, "grease", 0x18) : one;
        }),
      };
      const cover = buildHello(template, { serverName: PUBLIC, protocols: null });
      const known = hides ? pair : later;
      const [config = assert.fail()] = readEchConfigs(Buffer.from(known.config, "base64"));
      const hello = hideHello(cover, config, REAL);
      const dialled = dial13(listener.port, { hello });
      if (hides) {
        const { stream } = await dialled;
        assert.equal((await listener.accepted()).serverName, REAL);
        stream.destroy();
      } else
        await assert.rejects(dialled, /did not take the Encrypted ClientHello, and says which one it takes/);
    });

  test("a server with a new key: one more connection with what it says, and one warning", async () => {
    await using listener = await listenWithEch(later.key);
    const { log, said } = warnings();
    const { opened, wire } = await dialWithEch(listener.port, ech(pair.config), { log });
    assert.equal(listener.count(), 2);
    assert.equal(wire.includes(REAL), false);
    assert.equal((await listener.accepted()).serverName, REAL);
    await until("the first handshake has failed", () => listener.failures.length === 1);
    assert.match(listener.failures[0] ?? "", /the peer sent the alert ech required/);
    assert.match(said.join("\n"), /^proxy n: ech-opts: the server has another configuration/);
    await checkEcho(opened, randomBytes(1000));
  });

  test("what a server says is believed only where it is known by the public name, or the pin", async () => {
    await using listener = await listenWithEch(later.key, { certificate: ofReal });
    for (const more of [{}, { "skip-cert-verify": true }])
      await assert.rejects(
        dialWithEch(listener.port, { ...ech(pair.config), ...more }),
        /ech-opts: the server did not take the Encrypted ClientHello, and is not known to be public-name\.test/,
      );
    assert.equal(listener.count(), 2, "never a second connection");
    const pinned = await dialWithEch(listener.port, { ...ech(pair.config), fingerprint: ofReal.fingerprint });
    assert.equal((await listener.accepted()).serverName, REAL);
    pinned.opened.stream.destroy();
  });

  test("a key that is none fails the dial, and nothing is sent", async () => {
    await using listener = await listenWithEch(pair.key);
    const publicKey = Buffer.alloc(32); // all secrets with it are zero
    const list = encodeEchConfigs([encodeEchConfig({ id: 1, publicKey, publicName: PUBLIC })]);
    await assert.rejects(
      dialWithEch(listener.port, ech(list.toString("base64"))),
      /ech-opts: the configuration cannot be used/,
    );
    await until("it has gone", () => listener.failures.length === 1);
    assert.match(listener.failures[0] ?? "", /closed the connection/);
  });

  test("a server without it is not spoken to", async () => {
    await using listener = await listenWithEch("");
    await assert.rejects(
      dialWithEch(listener.port, ech(pair.config)),
      /TLS to real-name\.test: ech-opts: the server has switched Encrypted ClientHello off/,
    );
    assert.equal(listener.count(), 1);
  });

  test("clients that hide nothing are served: a browser's invented extension, other libraries, TLS 1.2", async () => {
    await using listener = await listenWithEch(pair.key);
    let count = 0;
    for (const node of [{}, { "client-fingerprint": "chrome" }, { "client-fingerprint": "qq" }]) {
      const { opened } = await dialWithEch(listener.port, node);
      assert.equal((await listener.accepted(++count)).serverName, REAL);
      await checkEcho(opened, randomBytes(100_000));
    }
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      const options = {
        port: listener.port,
        host: "127.0.0.1",
        servername: PUBLIC,
        rejectUnauthorized: false,
      };
      const socket = connect({
        ...options,
        minVersion: version,
        maxVersion: version,
        ALPNProtocols: ["http/1.1"],
      });
      await once(socket, "secureConnect");
      assert.deepEqual([socket.getProtocol(), socket.alpnProtocol], [version, "http/1.1"]);
      await checkEcho({ stream: socket, alpn: null, bypass: null }, randomBytes(100_000));
    }
    assert.deepEqual(listener.failures, []);
  });

  test("no protocol in common is the alert that libraries send", async () => {
    await using listener = await listenWithEch(pair.key, { alpn: ["h2"] });
    await assert.rejects(
      dialWithEch(listener.port, { ...ech(pair.config), alpn: ["http/1.1"] }),
      /alert no application protocol/,
    );
  });

  test("a key in a file is replaced by what it becomes, if that is one", async () => {
    let change = (_pem: string): void => assert.fail("not watched");
    const files: SafeFiles = {
      ...textFiles,
      readPem: async (text) => (text === "ech.pem" ? pair.key : text),
      watchPem(path, on) {
        if (path === "ech.pem") change = on;
        return { [Symbol.dispose]() {} };
      },
    };
    const { log, said } = warnings();
    await using listener = await listenWithEch("ech.pem", { files, log });
    let count = 0;
    const name = async (config: string) => {
      const { opened } = await dialWithEch(listener.port, ech(config));
      opened.stream.destroy();
      const { serverName } = await listener.accepted(++count);
      return [serverName, listener.count()];
    };
    assert.deepEqual(await name(pair.config), [REAL, 1]);
    change("nonsense");
    assert.match(said[0] ?? "", /ech\.pem: changed, but cannot be used: listener l: ech-key/);
    assert.deepEqual(await name(pair.config), [REAL, 2]);
    change(later.key);
    assert.deepEqual(await name(later.config), [REAL, 3]);
    assert.deepEqual(await name(pair.config), [REAL, 5], "the old one is rejected first");
  });

  test("hellos that are cut, changed or followed by nonsense end in an alert or a close, never in a hang", async () => {
    await using listener = await listenWithEch(pair.key);
    const [config = assert.fail()] = readEchConfigs(Buffer.from(pair.config, "base64"));
    const { message } = hideHello(
      buildHello(CHROME_133, { serverName: PUBLIC, protocols: null }),
      config,
      REAL,
    );
    const say = async (bytes: Buffer): Promise<void> => {
      const socket = connectTcp({ port: listener.port, host: "127.0.0.1" }).on("error", () => {});
      socket.resume().end(bytes);
      await once(socket, "close");
    };
    const whole = plainRecord(RECORD.handshake, message, 0x0301);
    for (let size = 0; size < whole.length; size += 61) await say(whole.subarray(0, size));
    for (let at = 0; at < whole.length; at += 97) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 0x81;
      await say(changed);
    }
    await say(Buffer.concat([whole, randomBytes(200)]));
    await say(Buffer.concat([whole, plainRecord(RECORD.handshake, message)]));
    await say(Buffer.concat([whole, plainRecord(RECORD.applicationData, randomBytes(60))]));
    await say(randomBytes(400));
    await until("all have ended", () => listener.failures.length === listener.count());
    assert.equal(listener.acceptedCount(), 0);
    const { opened } = await dialWithEch(listener.port, ech(pair.config));
    await checkEcho(opened, randomBytes(10));
  });

  test("keys that cannot be used, or would mean less than they say, are configuration errors", async () => {
    await assert.rejects(listenWithEch("nonsense"), /listener l: ech-key: expected a PEM block ECH KEYS/);
    await assert.rejects(listenWithEch(own.key), /listener l: ech-key/);
  });
});
