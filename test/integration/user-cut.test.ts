/** A user who goes loses what is open and nobody else does, whatever lies below and whoever moves the bytes. */
import assert from "node:assert/strict";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import type { ManagedInbound } from "#core/inbound.ts";
import type { Protocol } from "#core/protocol.ts";
import { shadowsocks } from "#protocols/shadowsocks/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { openThreads, pathsOver, type Path } from "../support/carriers.ts";
import { makeCertificate } from "../support/certificate.ts";
import { echoed, outcome } from "../support/client.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient, openServer } from "../support/protocol-pair.ts";

const certificate = makeCertificate({ names: ["server.test"] });

interface Layer {
  readonly name: string;
  readonly server: object;
  readonly client: object;
  /** Relay threads can go on with it. */
  readonly isCarried: boolean;
}

const LAYERS: readonly Layer[] = [
  { name: "nothing", server: { "allow-insecure": true }, client: {}, isCarried: true },
  {
    name: "TLS",
    server: { certificate: certificate.cert, "private-key": certificate.key },
    client: {
      tls: true,
      servername: "server.test",
      sni: "server.test",
      fingerprint: certificate.fingerprint,
    },
    isCarried: true,
  },
  {
    name: "WebSocket",
    server: { "allow-insecure": true, "ws-path": "/w" },
    client: { network: "ws", "ws-opts": { path: "/w" } },
    isCarried: false,
  },
];

interface Kind {
  readonly protocol: Protocol;
  readonly server: object;
  readonly client: object;
  /** The client's key for a credential. */
  readonly key: string;
  readonly credentials: Readonly<Record<"ada" | "bob", string>>;
  readonly layers: readonly Layer[];
}

const IDS = { ada: "b831381d-6324-4d53-ad4f-8cda48b30811", bob: "11111111-2222-3333-4444-555555555555" };
const KEY = Buffer.alloc(16, 1).toString("base64");
const SHADOWSOCKS = { cipher: "2022-blake3-aes-128-gcm", password: KEY };
const keyOf = (byte: number) => Buffer.alloc(16, byte).toString("base64");

const KINDS: readonly Kind[] = [
  {
    protocol: trojan,
    server: {},
    client: { "allow-insecure": true },
    key: "password",
    credentials: { ada: "one", bob: "two" },
    layers: LAYERS,
  },
  { protocol: vless, server: {}, client: {}, key: "uuid", credentials: IDS, layers: LAYERS },
  { protocol: vmess, server: {}, client: { alterId: 0 }, key: "uuid", credentials: IDS, layers: LAYERS },
  {
    protocol: shadowsocks,
    server: SHADOWSOCKS,
    client: SHADOWSOCKS,
    key: "password",
    credentials: { ada: keyOf(2), bob: keyOf(3) },
    layers: [{ name: "nothing", server: {}, client: {}, isCarried: true }],
  },
];

const PATHS: readonly Path[] = [{ name: "pump", carrier: null }, ...pathsOver(await openThreads(1))];

/** Users of the file, in each protocol's own spelling. */
function usersOf({ protocol, key, credentials }: Kind): object {
  const entries = Object.entries(credentials);
  if (protocol === shadowsocks) return { users: credentials };
  return { users: entries.map(([username, credential]) => ({ username, [key]: credential })) };
}

async function cutsOnlyOne(kind: Kind, layer: Layer, { carrier }: Path): Promise<void> {
  const { protocol, key, credentials } = kind;
  const takenBefore = carrier?.taken ?? 0;
  await using origin = await openTcpOrigin(echo);
  const options = { ...kind.server, ...layer.server, ...usersOf(kind) };
  await using server = await openServer(protocol, options, undefined, carrier);
  const dial = async (credential: string): Promise<Duplex> => {
    const node = { server: "127.0.0.1", port: server.port, ...kind.client, ...layer.client };
    const text = protocol === shadowsocks ? `${KEY}:${credential}` : credential;
    const outbound = await openClient(protocol, { ...node, [key]: text });
    const context = { signal: AbortSignal.timeout(10_000), metadata: null };
    const stream = await outbound.connect(origin.destination, context);
    stream.on("error", () => {});
    await echoed(stream, 200_000);
    await echoed(stream, 200_000); // in the threads by now
    return stream;
  };
  const [ada, bob] = [await dial(credentials.ada), await dial(credentials.bob)];
  if (carrier !== null && layer.isCarried) assert.equal(carrier.taken, takenBefore + 2, "not carried");
  const cut = outcome(ada);
  const { inbound } = server;
  (inbound as ManagedInbound).replaceUsers([{ id: "bob", credential: credentials.bob, flow: null }]);
  await cut;
  await echoed(bob, 100_000);
  bob.destroy();
}

for (const kind of KINDS)
  for (const layer of kind.layers)
    for (const path of PATHS)
      test(
        `${kind.protocol.type} over ${layer.name}, ${path.name}: only who goes is cut`,
        { timeout: 20_000 },
        () => cutsOnlyOne(kind, layer, path),
      );
