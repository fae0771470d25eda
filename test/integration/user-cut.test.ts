/** A removed user loses all open connections and no other user does, over every transport and relay backend. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import type { ManagedInbound } from "#core/inbound.ts";
import type { Protocol } from "#core/protocol.ts";
import type { Destination } from "#core/session.ts";
import { COMMAND_CONNECT, encodeRequest, keyOf } from "#protocols/trojan/wire.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { vless } from "#protocols/vless/index.ts";
import { CountingCarrier, openThreads, type Path } from "../support/carriers.ts";
import { makeCertificate } from "../support/certificate.ts";
import { echoed, outcome } from "../support/client.ts";
import { directDialer } from "../support/direct-accept.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";

const certificate = makeCertificate({ names: ["server.test"] });

interface Layer {
  readonly name: string;
  readonly server: object;
  readonly client: object;
}

const TLS = {
  server: { certificate: certificate.cert, "private-key": certificate.key },
  client: { tls: true, servername: "server.test", sni: "server.test", fingerprint: certificate.fingerprint },
};

const WEBSOCKET = {
  server: { ...TLS.server, "ws-path": "/w" },
  client: { ...TLS.client, network: "ws", "ws-opts": { path: "/w" } },
};

const LAYERS: readonly Layer[] = [
  { name: "nothing", server: { "allow-insecure": true }, client: {} },
  { name: "TLS", ...TLS },
  { name: "WebSocket in TLS", ...WEBSOCKET },
];

const texts = newEncryption("native", "x25519");
const encrypted = (name: string, { server, client }: Omit<Layer, "name">): Layer => ({
  name: `VLESS Encryption over ${name}`,
  server: { ...server, decryption: texts.server },
  client: { ...client, encryption: texts.client },
});
/** Of VLESS. */
const ENCRYPTED: readonly Layer[] = [
  encrypted("TCP", { server: {}, client: {} }),
  encrypted("TLS", TLS),
  encrypted("WebSocket in TLS", WEBSOCKET),
];

interface Kind {
  readonly protocol: Protocol;
  readonly key: "password" | "uuid";
  readonly credentials: Readonly<Record<"ada" | "bob", string>>;
}

const KINDS: readonly Kind[] = [
  { protocol: trojan, key: "password", credentials: { ada: "one", bob: "two" } },
  {
    protocol: vless,
    key: "uuid",
    credentials: {
      ada: "b831381d-6324-4d53-ad4f-8cda48b30811",
      bob: "11111111-2222-3333-4444-555555555555",
    },
  },
];

const threads = await openThreads(1);
const PATHS: readonly Path[] = [
  { name: "pump", backend: null },
  ...(threads === null ? [] : [{ name: "workers", backend: new CountingCarrier(threads, 1) }]),
];

type Dial = (credential: string, to: Destination) => Promise<Duplex>;

function dialer({ protocol, key }: Kind, { client, server }: Layer, port: number): Dial {
  const context = { signal: AbortSignal.timeout(10_000), metadata: null };
  return async (credential, to) => {
    if (protocol === trojan && "allow-insecure" in server) {
      // Our own client does not go without TLS.
      const stream = await directDialer.connect({ host: "localhost", ip: null, port }, context);
      stream.write(encodeRequest(keyOf(credential), { command: COMMAND_CONNECT, destination: to }));
      return stream;
    }
    const options = { server: "127.0.0.1", port, ...client, [key]: credential };
    return (await openClient(protocol, options)).connect(to, context);
  };
}

async function cutsOnlyOne(kind: Kind, layer: Layer, { backend }: Path): Promise<void> {
  const { protocol, key, credentials } = kind;
  const takenBefore = backend?.taken ?? 0;
  await using origin = await openTcpOrigin(echo);
  const users = Object.entries(credentials).map(([username, secret]) => ({ username, [key]: secret }));
  await using server = await openServer(protocol, { ...layer.server, users }, undefined, backend);
  const dial = dialer(kind, layer, server.port);
  const converse = async (credential: string): Promise<Duplex> => {
    const stream = await dial(credential, origin.destination);
    stream.on("error", () => {});
    await echoed(stream, 200_000);
    await echoed(stream, 200_000); // by the threads, where it is handed over
    return stream;
  };
  const [ada, bob] = [await converse(credentials.ada), await converse(credentials.bob)];
  if (backend !== null) assert.equal(backend.taken, takenBefore + 2, "not carried");
  const cut = Promise.race([once(ada, "end"), outcome(ada)]);
  const { inbound } = server;
  (inbound as ManagedInbound).replaceUsers([{ id: "bob", credential: credentials.bob, flow: null }]);
  await cut;
  await echoed(bob, 100_000);
  for (const stream of [ada, bob]) stream.destroy();
}

for (const kind of KINDS)
  for (const layer of kind.protocol === vless ? [...LAYERS, ...ENCRYPTED] : LAYERS)
    for (const path of PATHS)
      test(
        `${kind.protocol.type} over ${layer.name}, ${path.name}: only the removed user is cut off`,
        {
          timeout: 5_000,
        },
        () => cutsOnlyOne(kind, layer, path),
      );
