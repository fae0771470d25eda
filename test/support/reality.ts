/** Our REALITY server in front of sites of a test, and what clients with its keys say. */
import { createPublicKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer } from "node:tls";
import { type Log, SILENT } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import type { TlsClient, TlsProvider } from "#core/tls.ts";
import type { AcceptedConnection } from "#core/accepted.ts";
import { openWorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import { openTrust } from "#net/dial/trust.ts";
import { mldsa65Key } from "#transport/reality/server/own-certificate.ts";
import { sealHello } from "#transport/reality/token.ts";
import { chooseSecurityServer, type SecurityServer } from "#transport/security.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import { plainRecord, RECORD } from "#transport/tls13/records.ts";
import { acceptedSocket } from "./accepted.ts";
import { makeCertificate } from "./certificate.ts";
import { directDialer, planningDialer } from "./direct-accept.ts";
import { textFiles } from "./text-files.ts";
import { tlsLibrary, tlsProvider } from "./tls.ts";

export const SITE = "site.test";
export const SHORT_ID = "0123456789abcdef";
export const site = makeCertificate({ names: [SITE] });
export const { d: privateKey = "", x: publicKey = "" } = generateKeyPairSync("x25519").privateKey.export({
  format: "jwk",
});
const seed = randomBytes(32);
export const mldsa65Seed = seed.toString("base64url");
export const mldsa65Verify = createPublicKey(mldsa65Key(seed))
  .export({ type: "spki", format: "der" })
  .subarray(-1952)
  .toString("base64url");

export interface Listening extends AsyncDisposable {
  readonly port: number;
}

/** Its connections end with it. */
export async function listening(server: Server): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.on("close", () => sockets.delete(socket));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** A site with TLS; it sends a line to each client that completes a handshake. */
export async function openSite(more: object = {}): Promise<Listening> {
  const server = createTlsServer({ cert: site.cert, key: site.key, ...more }, (socket) => {
    socket.on("error", () => {}).end("HTTP/1.1 200 OK\r\n\r\nthe site");
  });
  // Of a handshake that takes too long the runtime tells, and does not end it.
  return await listening(server.on("tlsClientError", (_, socket) => socket.destroy()));
}

export interface SecurityOptions {
  /** Port of 127.0.0.1. */
  readonly dest: number;
  /** In place of keys of `reality-config`. */
  readonly more?: object;
  readonly bypassable?: boolean;
  readonly through?: (name: string) => Dialer;
  readonly log?: Log;
  readonly dialer?: Dialer;
}

export interface RealityOptions extends SecurityOptions {
  /** Gets each client that is let in. Absent: it hears what it has said. */
  readonly on?: (stream: Duplex) => void;
}

export interface Reality extends Listening {
  /** Why clients were not let in, in order. */
  readonly refused: readonly string[];
}

/** The security layer of a listener. */
export function openSecurity(options: SecurityOptions): Promise<SecurityServer> {
  const { dest, more = {}, bypassable = false, through = noWay, log = SILENT } = options;
  const { dialer = directDialer } = options;
  const reality = {
    dest: toDestination("127.0.0.1", dest),
    "private-key": privateKey,
    "short-id": [SHORT_ID],
    "server-names": [SITE],
    "max-time-difference": 0,
    proxy: "",
    xver: 0,
    "mldsa65-seed": "",
    ...more,
  };
  return chooseSecurityServer(
    { "client-auth-type": "", "reality-config": reality },
    {
      where: "listener r",
      alpn: [],
      bypassable: () => bypassable,
      carriesHttp2: false,
      tls: tlsProvider,
      files: textFiles,
      dialer,
      through,
      nowMs: Date.now,
      log,
    },
  );
}

/** The same listener, whose clients are accepted by workers. */
export async function openThreadedReality({ on = echo, ...options }: RealityOptions): Promise<Reality> {
  await using opened = new AsyncDisposableStack();
  const security = opened.use(await openSecurity({ ...options, dialer: planningDialer }));
  const rules = security.openRules();
  if (rules === null) throw new Error("workers may not shake hands for this listener");
  const engine = opened.use(await openWorkerBackend({ tlsLibrary, threads: 1, onDeath: () => {} }));
  const pool = new SocketPool();
  pool.useThreads(engine.accepting);
  const refused: string[] = [];
  const onAccepted = (connection: AcceptedConnection): void => {
    const kept = security.keep(connection);
    if (kept !== null) return on(kept.stream.on("error", () => {}));
    security.accept(connection).then(
      ({ stream }) => on(stream.on("error", () => {})),
      (error: Error) => refused.push(error.message),
    );
  };
  const asked = { ip: LOOPBACK_V4, port: 0, owner: "test" };
  const lease = opened.use(
    await pool.leaseTcp(asked, { handshake: "reality", rules, probes: null, onAccepted }),
  );
  lease.activate();
  const all = opened.move();
  return {
    port: lease.endpoint.port,
    refused,
    async [Symbol.asyncDispose]() {
      pool.cutOff();
      await all.disposeAsync();
    },
  };
}

export async function openReality({ on = echo, ...options }: RealityOptions): Promise<Reality> {
  const security = await openSecurity(options);
  const refused: string[] = [];
  const server = await listening(
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      security.accept(acceptedSocket(socket)).then(
        ({ stream }) => on(stream.on("error", () => {})),
        (error: Error) => refused.push(error.message),
      );
    }),
  );
  return {
    port: server.port,
    refused,
    async [Symbol.asyncDispose]() {
      security[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

function echo(stream: Duplex): void {
  stream.pipe(stream);
}

function noWay(name: string): never {
  throw new Error(`no outbound ${name} here`);
}

const trust = await openTrust([site.cert], textFiles, "tls.custom-certifactes");
const builtInTrust = await openTrust([], textFiles, "tls.custom-certifactes");
const DIAL_MS = 15_000;

export interface RealityNode {
  /** In place of keys of `reality-opts`. */
  readonly keys?: object;
  readonly "client-fingerprint"?: string;
  /** False: the site's certificate is not known. */
  readonly trusts?: boolean;
}

/** Of a node. */
export async function realityClient(
  provider: TlsProvider,
  { keys = {}, trusts = true, ...more }: RealityNode,
): Promise<TlsClient> {
  const reality = {
    "public-key": publicKey,
    "short-id": SHORT_ID,
    "support-x25519mlkem768": true,
    ...keys,
  };
  const known = trusts ? trust : builtInTrust;
  const place = { node: "n", server: "127.0.0.1", serverName: SITE, files: textFiles, trust: known };
  const fields = { "skip-cert-verify": false, "reality-opts": reality, ...more };
  return provider.makeClient(await readTlsClient(fields, place), SILENT);
}

/** Our own client, over a connection to the server. `keys`: in place of keys of `reality-opts`. */
export async function dialReality(socket: Socket, keys: object = {}): Promise<Duplex> {
  const client = await realityClient(tlsProvider, { keys });
  return (await client.open(socket, { signal: AbortSignal.timeout(DIAL_MS) })).stream;
}

export interface HelloKeys {
  readonly serverName?: string;
  readonly publicKey?: string;
  readonly shortId?: string;
  /** The client's clock. */
  readonly nowMs?: number;
}

/** A browser's ClientHello with a token of those keys, in its record. */
export function helloWithToken(keys: HelloKeys = {}): Buffer {
  const { serverName = SITE, publicKey: key = publicKey, shortId = SHORT_ID, nowMs = Date.now() } = keys;
  const options = {
    publicKey: Buffer.from(key, "base64url"),
    shortId: Buffer.from(shortId, "hex"),
    clientVersion: [26, 7, 28],
  } as const;
  const hello = buildHello(CHROME_133, { serverName, protocols: null });
  return plainRecord(RECORD.handshake, sealHello(hello, options, nowMs).hello.message, 0x0301);
}

/** The same browser's, without a token. */
export function plainHello(serverName = SITE): Buffer {
  const { message } = buildHello(CHROME_133, { serverName, protocols: null });
  return plainRecord(RECORD.handshake, message, 0x0301);
}

export async function readAll(stream: Duplex): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const bytes of stream) pieces.push(bytes as Buffer);
  return Buffer.concat(pieces);
}
