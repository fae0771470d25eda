/** An AnyTLS listener whose sessions workers keep, and clients of it. */
import { anytls } from "#protocols/anytls/index.ts";
import * as wire from "#protocols/anytls/wire.ts";
import { toDestination } from "#net/address/ip.ts";
import { type FrameClient, openFrameClient } from "./anytls-sessions.ts";
import { makeCertificate } from "./certificate.ts";
import { type KeptClients, openKeptClients } from "./kept-clients.ts";
import { nativeTls } from "./native-tls.ts";
import { openClient } from "./protocol-pair.ts";

export const skip =
  process.platform === "linux" && nativeTls !== null ? false : "SKIP sessions that workers read: needs Linux";

const certificate = makeCertificate({ names: ["server.test"] });
const SERVER = {
  users: { ann: "letmein", bob: "other" },
  certificate: certificate.cert,
  "private-key": certificate.key,
};

/** What proves a user by this password. */
export const preambleOf = (password: string): Buffer => wire.encodePreamble(wire.passwordHash(password), 30);

/** Its users are ann (`letmein`) and bob (`other`). */
export const openServer = (options: object = {}): Promise<KeptClients> =>
  openKeptClients(anytls, { ...SERVER, ...options });

/** Ann's, frame by frame. */
export const framesTo = (server: KeptClients): Promise<FrameClient> =>
  openFrameClient(server.port, preambleOf("letmein"));

/** Our own client, of ann; over TLS unless `options` say something else. */
export async function nodeOf(
  server: KeptClients,
  options: object = { sni: "server.test", fingerprint: certificate.fingerprint },
) {
  const outbound = await openClient(anytls, {
    server: "127.0.0.1",
    port: server.port,
    password: "letmein",
    udp: true,
    ...options,
  });
  const context = () => ({ signal: AbortSignal.timeout(20_000), metadata: null });
  const connect = (port: number) => outbound.connect(toDestination("127.0.0.1", port), context());
  return { outbound, connect, [Symbol.asyncDispose]: () => outbound[Symbol.asyncDispose]() };
}
