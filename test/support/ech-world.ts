/** A TLS listener on loopback that reads Encrypted ClientHello, and clients of it whose bytes are kept. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import * as z from "zod";
import { messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import { type Log, SILENT } from "#core/log.ts";
import type { TlsAccepted, TlsOpened } from "#core/tls.ts";
import { openTrust } from "#net/dial/trust.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import { tlsClientFields, tlsServerFields } from "#transport/tls/fields.ts";
import { readTlsServer } from "#transport/tls/server-options.ts";
import { makeCertificate } from "./certificate.ts";
import { textFiles } from "./text-files.ts";
import { tlsProvider } from "./tls.ts";
import { until } from "./until.ts";

export const REAL = "real-name.test";
export const PUBLIC = "public-name.test";

const authority = makeCertificate({ names: ["Authority"] });
/** For both names. */
export const own = makeCertificate({ names: [REAL, PUBLIC], issuer: authority });
/** For the name that is hidden alone. */
export const ofReal = makeCertificate({ names: [REAL], issuer: authority });
const trust = await openTrust([authority.cert], textFiles, "test");

export interface EchListener extends AsyncDisposable {
  readonly port: number;
  /** The last one that was let in, once there are so many. */
  readonly accepted: (count?: number) => Promise<TlsAccepted>;
  readonly acceptedCount: () => number;
  /** Why handshakes failed. */
  readonly failures: readonly string[];
  /** Connections that came. */
  readonly count: () => number;
}

export interface ListenerChoice {
  readonly certificate?: { readonly cert: string; readonly key: string };
  readonly files?: SafeFiles;
  readonly log?: Log;
  readonly alpn?: readonly string[];
}

/** Sends everything back. `echKey` empty: without it. */
export async function listenWithEch(echKey: string, choice: ListenerChoice = {}): Promise<EchListener> {
  const { certificate = own, files = textFiles, log = SILENT, alpn = ["h2", "http/1.1"] } = choice;
  const pair = { certificate: certificate.cert, "private-key": certificate.key };
  const fields = z.object(tlsServerFields).parse({ ...pair, "ech-key": echKey });
  const options = readTlsServer(fields, "listener l", { alpn }) ?? assert.fail("no certificate");
  const server = await tlsProvider.openServer(options, files, log);
  const [accepted, failures, sockets]: [TlsAccepted[], string[], Socket[]] = [[], [], []];
  const tcp = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket.on("error", () => {}));
    server.accept(socket).then(
      (one) => {
        accepted.push(one);
        one.stream.on("error", () => {});
        one.stream.pipe(one.stream);
      },
      (error: unknown) => failures.push(messageOf(error)),
    );
  });
  await once(tcp.listen(0, "127.0.0.1"), "listening");
  return {
    port: (tcp.address() as AddressInfo).port,
    async accepted(count = 1) {
      await until(`${count} are let in`, () => accepted.length >= count);
      return accepted.at(-1) ?? assert.fail();
    },
    acceptedCount: () => accepted.length,
    failures,
    count: () => sockets.length,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server[Symbol.dispose]();
      tcp.close();
      await once(tcp, "close");
    },
  };
}

export interface EchDial {
  readonly opened: TlsOpened;
  /** All that the client sent, of every connection. */
  readonly wire: Buffer;
}

/** Dials as a node for `REAL` does. `options`: keys of the node. */
export async function dialWithEch(
  port: number,
  options: object,
  { log = SILENT }: { readonly log?: Log } = {},
): Promise<EchDial> {
  const fields = z.object(tlsClientFields).parse(options);
  const place = { node: "n", server: REAL, files: textFiles, trust };
  const client = tlsProvider.makeClient(await readTlsClient(fields, place), log);
  const sent: Buffer[] = [];
  const redial = async (): Promise<Duplex> => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    await once(socket, "connect");
    const write = socket.write.bind(socket);
    return Object.assign(socket, {
      write(bytes: Buffer, ...others: []) {
        sent.push(Buffer.from(bytes));
        return write(bytes, ...others);
      },
    });
  };
  const opened = await client.open(await redial(), { signal: AbortSignal.timeout(20_000), redial });
  opened.stream.on("error", () => {});
  return { opened, wire: Buffer.concat(sent) };
}

/** Everything comes back, and then the end. */
export async function checkEcho({ stream }: TlsOpened, bytes: Buffer): Promise<void> {
  const back: Buffer[] = [];
  stream.on("data", (piece: Buffer) => back.push(piece));
  const ended = once(stream, "end");
  stream.end(bytes);
  await ended;
  assert.ok(Buffer.concat(back).equals(bytes), "other bytes came back");
}
