/** Against shadowsocks-libev and simple-obfs as Debian packs them (shadowsocks-libev, simple-obfs). */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { shadowsocks, ss } from "#protocols/shadowsocks/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { datagramReplyAtLast, roundTrip } from "../support/client.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { freePort, missing, startPeer } from "../support/peer.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";

const CIPHERS = [
  "aes-128-gcm",
  "aes-192-gcm",
  "aes-256-gcm",
  "chacha20-ietf-poly1305",
  "xchacha20-ietf-poly1305",
  "aes-256-cfb",
  "aes-192-ctr",
  "rc4-md5",
  "chacha20",
  "chacha20-ietf",
];
const password = "sesame";
const context = () => ({ signal: new AbortController().signal, metadata: null });
const BULK_BYTES = 1 << 20;

describe("ss-server, our client", { skip: missing("ss-server", "obfs-server") }, () => {
  for (const cipher of CIPHERS)
    test(cipher, { timeout: 30_000 }, async () => {
      const port = await freePort();
      const command = ["ss-server", "-s", "127.0.0.1", "-p", `${port}`, "-k", password, "-m", cipher, "-u"];
      await using _peer = await startPeer(command, port);
      await using outbound = await openClient(ss, { server: "127.0.0.1", port, cipher, password, udp: true });
      await using origin = await openTcpOrigin(echo);
      await roundTrip(await outbound.connect(origin.destination, context()), BULK_BYTES);
      await using udp = await openUdpEcho();
      await using flow = await outbound.associate(udp.destination, context());
      const got = new Promise<{ payload: Uint8Array }>((resolve) => flow.receive(resolve));
      flow.send({ payload: Buffer.from("datagram"), destination: udp.destination });
      assert.equal(Buffer.from((await got).payload).toString(), "datagram");
    });

  for (const mode of ["http", "tls"])
    test(`obfs ${mode}`, { timeout: 30_000 }, async () => {
      const [port, inner] = [await freePort(), await freePort()];
      const server = ["ss-server", "-s", "127.0.0.1", "-p", `${inner}`, "-k", password, "-m", "aes-128-gcm"];
      await using _peer = await startPeer(server, inner);
      const obfs = [
        "obfs-server",
        "-s",
        "127.0.0.1",
        "-p",
        `${port}`,
        "--obfs",
        mode,
        "-r",
        `127.0.0.1:${inner}`,
      ];
      await using _obfs = await startPeer(obfs, port);
      await using outbound = await openClient(ss, {
        server: "127.0.0.1",
        port,
        cipher: "aes-128-gcm",
        password,
        plugin: "obfs",
        "plugin-opts": { mode, host: "example.com" },
      });
      await using origin = await openTcpOrigin(echo);
      for (const size of [5, BULK_BYTES])
        await roundTrip(await outbound.connect(origin.destination, context()), size);
    });
});

describe("v2ray-plugin's server, our client", { skip: missing("ss-server", "ss-v2ray-plugin") }, () => {
  for (const mux of [true, false])
    for (const tls of [true, false])
      test(`mux ${mux}, tls ${tls}`, { timeout: 30_000 }, async () => {
        const folder = mkdtempSync(join(tmpdir(), "weir-plugin-"));
        const certificate = makeCertificate({ names: ["example.com"] });
        for (const part of ["cert", "key"] as const) writeFileSync(join(folder, part), certificate[part]);
        const port = await freePort();
        const files = tls ? `tls;cert=${join(folder, "cert")};key=${join(folder, "key")};` : "";
        const plugin = `server;${files}host=example.com;path=/p${mux ? "" : ";mux=0"}`;
        const command = `ss-server -s 127.0.0.1 -p ${port} -k ${password} -m aes-128-gcm --plugin ss-v2ray-plugin --plugin-opts`;
        await using _peer = await startPeer([...command.split(" "), plugin], port);
        await using outbound = await openClient(ss, {
          server: "127.0.0.1",
          port,
          cipher: "aes-128-gcm",
          password,
          plugin: "v2ray-plugin",
          "plugin-opts": {
            mode: "websocket",
            host: "example.com",
            path: "/p",
            mux,
            tls,
            fingerprint: certificate.fingerprint,
          },
        });
        await using origin = await openTcpOrigin(echo);
        for (const size of [5, BULK_BYTES])
          await roundTrip(await outbound.connect(origin.destination, context()), size);
        rmSync(folder, { recursive: true });
      });
});

describe("ss-tunnel, our server", { skip: missing("ss-tunnel") }, () => {
  for (const cipher of CIPHERS)
    test(cipher, { timeout: 30_000 }, async () => {
      await using server = await openServer(shadowsocks, { cipher, password });
      await using origin = await openTcpOrigin(echo);
      const port = await freePort();
      const tunnel = async (to: number) =>
        startPeer(
          `ss-tunnel -s 127.0.0.1 -p ${server.port} -b 127.0.0.1 -l ${port} -u -m ${cipher} -k sesame -L 127.0.0.1:${to}`.split(
            " ",
          ),
          port,
        );
      {
        await using _peer = await tunnel(origin.port);
        await roundTrip(connect({ port, host: "127.0.0.1" }), BULK_BYTES);
      }
      await using udp = await openUdpEcho();
      await using _peer = await tunnel(udp.port);
      const reply = await datagramReplyAtLast(port, "datagram"); // its UDP socket opens behind its TCP socket
      assert.equal(String(reply), "datagram");
    });
});
