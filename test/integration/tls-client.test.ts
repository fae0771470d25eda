/** The dialling side of TLS, by the runtime's own libssl and by node:tls: what holds of one holds of the other. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { describe, test } from "node:test";
import type { TlsOptions } from "node:tls";
import { DialError } from "#core/errors.ts";
import { NativeTlsStream } from "#transport/tls/native-stream.ts";
import { makeCertificate } from "../support/certificate.ts";
import { readAll } from "../support/client.ts";
import { nativeTls } from "../support/native-tls.ts";
import {
  authority,
  certificate,
  dialPlain,
  openTlsOrigin,
  tlsClient,
  tlsDials,
  type DialedPlace,
  type TlsDial,
} from "../support/tls-origin.ts";
import { tlsProvider } from "../support/tls.ts";

const isPortable = nativeTls === null ? "SKIP the hello of a browser: needs the library" : false;
const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const expired = makeCertificate({ names: ["server.test"], issuer: authority, validForMs: -3_600_000 });
const untrusted = makeCertificate({ names: ["server.test"] });
const chained = { cert: certificate.cert + authority.cert };
/** The authority's certificate is not next to the one that it issued. */
const disordered = { cert: certificate.cert + untrusted.cert + authority.cert };
const show = ({ cert, key }: { cert: string; key: string }): TlsOptions => ({ cert, key });

interface Case {
  readonly what: string;
  readonly server?: TlsOptions;
  readonly fields?: object;
  readonly place?: DialedPlace;
  /** Absent: it is accepted. */
  readonly refused?: RegExp;
  /** What the server reports, where it reports more than a closed connection. */
  readonly alert?: RegExp;
}

const CASES: readonly Case[] = [
  { what: "a chain to an authority" },
  { what: "an address that the certificate names", place: { serverName: "127.0.0.1" } },
  {
    what: "an address that it does not name",
    place: { serverName: "127.0.0.2" },
    refused: /IP: 127\.0\.0\.2 is not in/,
    alert: /bad certificate/,
  },
  {
    what: "another name",
    place: { serverName: "other.test" },
    refused: /Host: other\.test\. is not in/,
    alert: /bad certificate/,
  },
  {
    what: "another name to verify",
    fields: { "name-cert-verify": "server.test" },
    place: { serverName: "front.test" },
  },
  {
    what: "another name to verify that is wrong",
    fields: { "name-cert-verify": "front.test" },
    refused: /Host: front\.test\. is not in/,
    alert: /bad certificate/,
  },
  {
    what: "an unknown authority",
    server: show(untrusted),
    refused: /self-signed certificate/,
    alert: /unknown ca/,
  },
  { what: "an expired certificate", server: show(expired), refused: /expired/, alert: /certificate expired/ },
  { what: "any certificate", server: show(untrusted), fields: { "skip-cert-verify": true } },
  {
    what: "a pinned certificate, whatever its name and its date",
    server: show(expired),
    fields: { fingerprint: expired.fingerprint },
    place: { serverName: "other.test" },
  },
  { what: "a pinned authority", server: chained, fields: { fingerprint: authority.fingerprint } },
  {
    what: "a pinned authority that is not shown in its place",
    server: disordered,
    fields: { fingerprint: authority.fingerprint },
  },
  { what: "a pinned authority that is known, not shown", fields: { fingerprint: authority.fingerprint } },
  {
    what: "a pinned authority, another name",
    server: chained,
    fields: { fingerprint: authority.fingerprint },
    place: { serverName: "other.test" },
    refused: /Host: other\.test\. is not in/,
    alert: /bad certificate/,
  },
  {
    what: "a pinned authority, an expired certificate",
    server: { ...show(expired), cert: expired.cert + authority.cert },
    fields: { fingerprint: authority.fingerprint },
    refused: /outside its dates/,
    alert: /bad certificate/,
  },
  {
    what: "another pin",
    fields: { fingerprint: untrusted.fingerprint },
    refused: /no certificate .* has/,
    alert: /bad certificate/,
  },
  { what: "TLS 1.2", server: { maxVersion: "TLSv1.2" } },
  {
    what: "TLS 1.1",
    server: { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" },
    refused: /handshake|alert|protocol version/i,
  },
  {
    what: "no protocol in common",
    server: { ALPNProtocols: ["ftp"] },
    fields: { alpn: ["h2"] },
    refused: /no application protocol/,
  },
];

async function check(dial: TlsDial, { server, fields, place, refused, alert }: Case, saysWhy: boolean) {
  await using origin = await openTlsOrigin(server);
  if (refused === undefined) {
    const accepted = origin.accepted();
    const { stream } = await dial(origin.port, fields, place);
    (await accepted).end("hello");
    assert.equal(String(await readAll(stream)), "hello");
    return void stream.destroy();
  }
  const told = alert === undefined || !saysWhy ? null : origin.refused();
  await assert.rejects(dial(origin.port, fields, place), (error) => {
    assert.ok(error instanceof DialError);
    assert.match(error.message, /^TLS to /);
    assert.match(error.message, refused);
    return true;
  });
  if (told !== null) assert.match(await told, alert as RegExp);
}

/** A server whose own words a test chooses. */
async function withServer(on: (socket: Socket) => void, use: (port: number) => Promise<void>): Promise<void> {
  const server = createServer((socket) => on(socket.on("error", () => {})));
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    await use((server.address() as AddressInfo).port);
  } finally {
    server.close();
  }
}

for (const { name, dial } of tlsDials) {
  const isNative = name === "native";
  describe(`dialling TLS by ${name}`, () => {
    for (const one of CASES)
      test(`${one.refused === undefined ? "accepted" : "refused"}: ${one.what}`, { timeout: 30_000 }, () =>
        check(dial, one, name !== "node:tls"),
      );

    test("the names that are sent, the protocol that is agreed on, the server that is dialled", async () => {
      await using origin = await openTlsOrigin({
        ALPNProtocols: ["http/1.1"],
        requestCert: true,
        rejectUnauthorized: false,
      });
      const own = makeCertificate({ names: ["me"], issuer: authority });
      for (const [serverName, sent] of [
        ["server.test", "server.test"],
        ["127.0.0.1", false],
      ] as const)
        for (const pair of [{}, { certificate: own.cert, "private-key": own.key }]) {
          const accepted = origin.accepted();
          const opened = await dial(origin.port, { alpn: ["h2", "http/1.1"], ...pair }, { serverName });
          assert.equal(opened.stream instanceof NativeTlsStream, isNative);
          assert.equal(opened.alpn, "http/1.1");
          assert.equal(opened.bypass, null);
          assert.equal((opened.stream as { remoteAddress?: string }).remoteAddress, "127.0.0.1");
          const there = await accepted;
          assert.equal((there as unknown as { servername: unknown }).servername, sent);
          const shown = there.getPeerX509Certificate()?.fingerprint256.replaceAll(":", "").toLowerCase();
          assert.equal(shown, "certificate" in pair ? own.fingerprint : undefined);
          opened.stream.destroy();
        }
      await using silent = await openTlsOrigin();
      assert.equal((await dial(silent.port, { alpn: ["h2"] })).alpn, null);
    });

    test("bulk and half-close, whichever side ends first; tickets are no data", async () => {
      const bytes = randomBytes(6 << 20);
      await using origin = await openTlsOrigin();
      for (const clientFirst of [true, false]) {
        const accepted = origin.accepted();
        const { stream } = await dial(origin.port);
        const sides: [Duplex, Duplex] = [stream, await accepted];
        const [first, second] = clientFirst ? sides : (sides.toReversed() as [Duplex, Duplex]);
        first.end(bytes);
        assert.equal(digestOf(await readAll(second)), digestOf(bytes));
        second.end(bytes);
        assert.equal(digestOf(await readAll(first)), digestOf(bytes));
        stream.destroy();
      }
    });

    test("a server that hangs up, one that talks nonsense, and one that says nothing until we leave", async () => {
      const failing = (port: number, pattern: RegExp) =>
        assert.rejects(dial(port), (error) => error instanceof DialError && pattern.test(error.message));
      await withServer(
        (socket) => socket.once("data", () => socket.end()),
        (port) => failing(port, /closed|ended/),
      );
      await withServer(
        (socket) => socket.once("data", () => socket.resetAndDestroy()),
        (port) => failing(port, /ECONNRESET|ended|closed/),
      );
      await withServer(
        (socket) => socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")),
        (port) => failing(port, /wrong version|packet length|closed|does not speak TLS/),
      );
      const closed = Promise.withResolvers<void>();
      const aborter = new AbortController();
      const listen = (socket: Socket): void => {
        socket.once("data", () => aborter.abort());
        socket.on("close", () => closed.resolve());
      };
      await withServer(listen, (port) =>
        assert.rejects(dial(port, {}, { signal: aborter.signal }), { name: "DialError", reason: "aborted" }),
      );
      await closed.promise;
      await using origin = await openTlsOrigin();
      const gone = dial(origin.port, {}, { signal: AbortSignal.abort() });
      await assert.rejects(gone, { name: "DialError", reason: "aborted" });
    });
  });
}

/** A record with a ServerHello of TLS 1.2, which is authenticated by nothing. */
function olderHello(): Buffer {
  const body = Buffer.concat([Buffer.from("0303", "hex"), randomBytes(32), Buffer.from("00c02f00", "hex")]);
  const message = Buffer.concat([Buffer.of(2, 0, 0, body.length), body]);
  return Buffer.concat([Buffer.of(0x16, 3, 3, 0, message.length), message]);
}

test(
  "a forged answer of TLS 1.2 takes the browser's hello from no later connection",
  { skip: isPortable },
  async () => {
    await using origin = await openTlsOrigin();
    const client = await tlsClient(tlsProvider, { "client-fingerprint": "chrome" });
    let forged = 0;
    const onClient = (near: Socket): void => {
      if (forged++ === 0) return void near.once("data", () => near.end(olderHello()));
      const far = connect({ port: origin.port, host: "127.0.0.1" });
      near
        .pipe(far)
        .on("error", () => {})
        .pipe(near);
    };
    await withServer(onClient, async (port) => {
      const redial = () => dialPlain(port);
      const dial = async () =>
        (await client.open(await redial(), { signal: AbortSignal.timeout(20_000), redial })).stream;
      const first = await dial();
      const second = await dial();
      assert.ok(first instanceof NativeTlsStream && !(second instanceof NativeTlsStream));
      for (const stream of [first, second]) stream.destroy();
    });
  },
);
