/** A server of `node:tls` on loopback for clients of TLS, and the ways of dialling it. */
import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { createServer, type TlsOptions, type TLSSocket } from "node:tls";
import * as z from "zod";
import { SILENT } from "#core/log.ts";
import { openTrust } from "#net/dial/trust.ts";
import type { TlsClient, TlsOpened, TlsProvider } from "#core/tls.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import { tlsClientFields } from "#transport/tls/fields.ts";
import { makeCertificate } from "./certificate.ts";
import { textFiles } from "./text-files.ts";
import { nativeTls } from "./native-tls.ts";
import { portableTls, tlsProvider } from "./tls.ts";

export const authority = makeCertificate({ names: ["Test Authority"] });
export const certificate = makeCertificate({ names: ["server.test", "127.0.0.1"], issuer: authority });
const trust = await openTrust([authority.cert], textFiles, "tls.custom-certifactes");

export interface TlsOrigin extends AsyncDisposable {
  readonly port: number;
  /** The next connection whose handshake is done. */
  accepted(): Promise<TLSSocket>;
  /** What the next connection is said to have failed of, during its handshake or behind it. */
  refused(): Promise<string>;
}

/** Each connection whose handshake is done is given to `on`. */
export async function openTlsOrigin(
  options: TlsOptions = {},
  on: (socket: TLSSocket) => void = () => {},
): Promise<TlsOrigin> {
  const sockets = new Set<Socket>();
  const server = createServer({
    cert: certificate.cert,
    key: certificate.key,
    allowHalfOpen: true,
    ...options,
  });
  server.on("connection", (socket) => {
    sockets.add(socket.on("close", () => sockets.delete(socket)));
  });
  server.on("secureConnection", (socket) => {
    socket.on("error", (error) => server.emit("refused", error));
    if (options.allowHalfOpen === false) socket.resume(); // to see the end, at which it closes
    on(socket);
  });
  server.on("tlsClientError", (error) => server.emit("refused", error));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    accepted: async () => ((await once(server, "secureConnection")) as [TLSSocket])[0],
    refused: async () => ((await once(server, "refused")) as [Error])[0].message,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

export interface DialedPlace {
  readonly serverName?: string;
  readonly bypassable?: boolean;
  readonly minVersion?: "TLSv1.2" | "TLSv1.3";
  readonly signal?: AbortSignal;
}

/** `fields` as in a file; the trust is the runtime's and `authority`. */
export type TlsDial = (port: number, fields?: object, place?: DialedPlace) => Promise<TlsOpened>;

/** A node's client by one way; it may open several connections. */
export async function tlsClient(
  provider: TlsProvider,
  fields: object,
  { serverName = "server.test", minVersion = "TLSv1.2" }: DialedPlace = {},
): Promise<TlsClient> {
  const read = z.object(tlsClientFields).parse(fields);
  const place = { node: "n", server: serverName, files: textFiles, trust, minVersion };
  return provider.makeClient(await readTlsClient(read, place), SILENT);
}

export async function dialPlain(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

const dialBy =
  (provider: TlsProvider, more: object = {}): TlsDial =>
  async (port, fields = {}, { bypassable = false, signal = AbortSignal.timeout(20_000), ...place } = {}) => {
    const client = await tlsClient(provider, { ...fields, ...more }, place);
    const redial = () => dialPlain(port);
    return await client.open(await redial(), { signal, bypassable, redial });
  };

export const tlsDials: readonly { readonly name: string; readonly dial: TlsDial }[] = [
  { name: "node:tls", dial: dialBy(portableTls) },
  ...(nativeTls === null
    ? []
    : [
        { name: "native", dial: dialBy(tlsProvider) },
        { name: "browser", dial: dialBy(tlsProvider, { "client-fingerprint": "chrome" }) },
      ]),
];
