/** Which implementation of TLS a provider gives, at both ends. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { duplexPair, type Duplex } from "node:stream";
import { test } from "node:test";
import { TLSSocket } from "node:tls";
import * as z from "zod";
import { SILENT } from "#core/log.ts";
import type { TlsClientOptions, TlsProvider, TlsServerOptions } from "#core/tls.ts";
import { showingBrowser } from "#transport/tls/provider.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import { tlsClientFields, tlsServerFields } from "#transport/tls/fields.ts";
import { NativeTlsStream } from "#transport/tls/native-stream.ts";
import { readTlsServer } from "#transport/tls/server-options.ts";
import { makeCertificate } from "../support/certificate.ts";
import { nativeTls } from "../support/native-tls.ts";
import { textFiles } from "../support/text-files.ts";
import { portableTls, tlsProvider } from "../support/tls.ts";

const own = makeCertificate({ names: ["server.test"] });
const ofKernel = nativeTls === null ? TLSSocket : NativeTlsStream;

const clientOptions = (carriesHttp2: boolean): Promise<TlsClientOptions> =>
  readTlsClient(z.object(tlsClientFields).parse({ fingerprint: own.fingerprint }), {
    node: "n",
    server: "server.test",
    files: textFiles,
    carriesHttp2,
  });

function serverOptions(carriesHttp2: boolean): TlsServerOptions {
  const fields = z.object(tlsServerFields).parse({ certificate: own.cert, "private-key": own.key });
  const options = readTlsServer(fields, "listener test", { carriesHttp2 });
  assert.ok(options !== null);
  return options;
}

async function tcpPair(): Promise<[client: Duplex, accepted: Duplex]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({ port: (server.address() as AddressInfo).port, allowHalfOpen: true });
  const [accepted] = (await once(server, "connection")) as [Socket];
  await once(client, "ready");
  server.close();
  return [client, accepted];
}

/** The streams that both ends get; one byte has gone each way. */
async function openBoth(provider: TlsProvider, [near, far]: readonly [Duplex, Duplex], carriesHttp2 = false) {
  using server = await provider.openServer(serverOptions(carriesHttp2), textFiles, SILENT);
  const client = provider.makeClient(await clientOptions(carriesHttp2), SILENT);
  const [opened, accepted] = await Promise.all([
    client.open(near, { signal: AbortSignal.timeout(20_000) }),
    server.accept(far),
  ]);
  for (const [from, to] of [
    [opened.stream, accepted.stream],
    [accepted.stream, opened.stream],
  ] as const) {
    from.write("x");
    assert.equal(String((await once(to, "data"))[0]), "x");
  }
  for (const { stream } of [opened, accepted]) stream.on("error", () => {}).destroy();
  return [opened.stream, accepted.stream];
}

const areAll = (streams: readonly Duplex[], kind: abstract new (...args: never[]) => Duplex): void =>
  assert.ok(streams.every((stream) => stream instanceof kind));

test("kernel sockets get the library, where there is one", async () => {
  areAll(await openBoth(tlsProvider, await tcpPair()), ofKernel);
});

test("streams that are no kernel sockets get node:tls", async () => {
  areAll(await openBoth(tlsProvider, duplexPair()), TLSSocket);
});

test("what carries HTTP/2 gets node:tls", async () => {
  areAll(await openBoth(tlsProvider, await tcpPair(), true), TLSSocket);
});

test("the portable provider gives node:tls alone", async () => {
  areAll(await openBoth(portableTls, await tcpPair()), TLSSocket);
});

test("a browser for all nodes that name none", async () => {
  const seen: string[] = [];
  const provider: TlsProvider = {
    allowsQuic: false,
    makeClient(options) {
      seen.push(options.clientFingerprint);
      return { open: () => assert.fail() };
    },
    openServer: () => assert.fail(),
  };
  const showing = showingBrowser(provider, "firefox");
  assert.equal(showingBrowser(provider, ""), provider);
  const options = await clientOptions(false);
  for (const clientFingerprint of ["", "chrome", "none"])
    showing.makeClient({ ...options, clientFingerprint }, SILENT);
  assert.deepEqual(seen, ["firefox", "chrome", "none"]);
});
