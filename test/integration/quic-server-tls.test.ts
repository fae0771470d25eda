/** The certificate of a QUIC listener: changed while it runs, asked of clients, and refused where it cannot be. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as z from "zod";
import type { SafeFiles } from "#core/files.ts";
import { SILENT } from "#core/log.ts";
import { PeerClosed } from "#transport/quic/connection-end.ts";
import { openQuicTlsServer } from "#transport/quic/server/tls.ts";
import { readQuicTlsClient } from "#transport/quic/native-tls.ts";
import { tlsClientFields, tlsServerFields } from "#transport/tls/fields.ts";
import { makeCertificate } from "../support/certificate.ts";
import { echoed, endpointAt, ServerNetwork } from "../support/quic-server-network.ts";
import { openQuicClientTls } from "../support/quic-tls.ts";
import { textFiles } from "../support/text-files.ts";
import { portableTls, tlsProvider } from "../support/tls.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";
const at = (port: number) => ({ endpoint: endpointAt("192.0.2.1", port) });
const fieldsOf = (fields: object) => z.object(tlsServerFields).parse(fields);

/** Files of the test, each of which can be written anew. */
function changingFiles(texts: Map<string, string>): SafeFiles & { write(path: string, text: string): void } {
  const watchers = new Map<string, (text: string) => void>();
  return {
    resolve: (path) => path,
    readPem: async (path) => texts.get(path) ?? path,
    watchPem(path, on) {
      watchers.set(path, on);
      return { [Symbol.dispose]: () => void watchers.delete(path) };
    },
    write: (path, text) => watchers.get(path)?.(text),
  };
}

describe("the TLS of a QUIC listener", { skip: SKIP }, () => {
  test("new clients get the changed certificate, those there stay", async () => {
    const [before, after] = [makeCertificate({ names: ["a.test"] }), makeCertificate({ names: ["b.test"] })];
    const files = changingFiles(
      new Map([
        ["c.pem", before.cert],
        ["k.pem", before.key],
      ]),
    );
    using tls = await openQuicTlsServer(fieldsOf({ certificate: "c.pem", "private-key": "k.pem" }), {
      where: "listener x",
      alpn: ["h3"],
      tls: tlsProvider,
      files,
      log: SILENT,
    });
    await using network = new ServerNetwork();
    network.serve({ openTls: tls.open });
    const pinned = async ({ fingerprint }: { fingerprint: string }) => ({
      openTls: await openQuicClientTls({ fingerprint }),
    });
    const first = await network.dial(at(1), await pinned(before));
    files.write("c.pem", after.cert);
    await network.dial(at(2), await pinned(before)); // the key does not fit yet
    files.write("k.pem", after.key);
    const second = await network.dial(at(3), await pinned(after));
    await assert.rejects(network.dial(at(4), await pinned(before)), /certificate/);
    assert.equal(String(await echoed(first, Buffer.from("old"))), "old");
    assert.equal(String(await echoed(second, Buffer.from("new"))), "new");
  });

  test("a client without the certificate that is asked for does not get in", async () => {
    const { cert, key, fingerprint } = makeCertificate({ names: ["a.test"] });
    const fields = fieldsOf({ certificate: cert, "private-key": key, "client-auth-type": "require-any" });
    const context = {
      where: "listener x",
      alpn: ["h3"],
      tls: tlsProvider,
      files: changingFiles(new Map()),
      log: SILENT,
    };
    using tls = await openQuicTlsServer(fields, context);
    await using network = new ServerNetwork();
    let served = 0;
    network.serve({
      openTls: tls.open,
      onConnection: () => {
        served++;
        return { onStream() {}, onDatagram() {} };
      },
    });
    const client = await network.dial(at(1), { openTls: await openQuicClientTls({ fingerprint }) });
    const end = await client.closed;
    assert.ok(end instanceof PeerClosed && end.closeCode === 0x12a, String(end));
    assert.equal(served, 0);
  });

  test("no certificate, no common protocol, and no QUIC", async () => {
    const { cert, key, fingerprint } = makeCertificate({ names: ["a.test"] });
    const context = { where: "listener x", alpn: ["other"], files: changingFiles(new Map()), log: SILENT };
    const fields = fieldsOf({ certificate: cert, "private-key": key });
    await assert.rejects(
      openQuicTlsServer(fieldsOf({}), { ...context, tls: tlsProvider }),
      /listener x: QUIC needs certificate and private-key/,
    );
    await assert.rejects(openQuicTlsServer(fields, { ...context, tls: portableTls }), /not relay: portable/);
    await assert.rejects(
      openQuicTlsServer({ ...fields, "ech-key": "x" }, { ...context, tls: tlsProvider }),
      /listener x: ech-key: Encrypted ClientHello is not available over QUIC/,
    );
    const ech = z.object(tlsClientFields).parse({ "ech-opts": { enable: true } });
    await assert.rejects(
      readQuicTlsClient(ech, { node: "n", server: "a.test", files: textFiles }),
      /proxy n: ech-opts: Encrypted ClientHello is not available over QUIC/,
    );
    using tls = await openQuicTlsServer(fields, { ...context, tls: tlsProvider });
    await using network = new ServerNetwork();
    network.serve({ openTls: tls.open });
    await assert.rejects(network.dial(at(1), { openTls: await openQuicClientTls({ fingerprint }) }), /QUIC/);
  });
});
