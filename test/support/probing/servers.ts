/** The servers that must treat all unauthenticated clients alike, and the probes sent to them. */
import { randomBytes, randomUUID } from "node:crypto";
import { duplexPair } from "node:stream";
import type { Dialer } from "#core/outbound.ts";
import type { Protocol } from "#core/protocol.ts";
import { encodePreamble, passwordHash } from "#protocols/anytls/wire.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { http } from "#protocols/http/index.ts";
import { shadowsocks, ss } from "#protocols/shadowsocks/index.ts";
import { socks } from "#protocols/socks/index.ts";
import { encodeCredentials } from "#protocols/socks/wire.ts";
import { encodeRequest as encodeTrojan, keyOf } from "#protocols/trojan/wire.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { encodeRequest } from "#protocols/vless/wire.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { toDestination } from "#net/address/ip.ts";
import { makeCertificate } from "../certificate.ts";
import { openClient, openServer, type Serving } from "../protocol-pair.ts";
import { recordFlight } from "./recording.ts";

export interface Probe {
  readonly kind: string;
  /** Another probe of the kind, or the same again. */
  next(): Buffer;
}

/** Whatever comes, the answers of one group are the same bytes, after the same time. */
export interface Probed {
  readonly name: string;
  readonly tls: boolean;
  /** Says nothing until the probe closes, or for a minute. */
  readonly silent: boolean;
  /** Its answers keep the connection: the time to the answer counts. */
  readonly answers?: true;
  /** Probes come without TLS and are answered with it: the types of its records count. */
  readonly records?: true;
  readonly groups: readonly (readonly Probe[])[];
  open(): Promise<Serving>;
}

const certificate = makeCertificate({ names: ["server.test"] });
export const trusted = { ca: certificate.cert, servername: "server.test" };
const tls = { certificate: certificate.cert, "private-key": certificate.key };
const password = "correct-horse";
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const TARGET = toDestination("origin.test", 443);

const probe = (kind: string, next: () => Buffer): Probe => ({ kind, next });
const random = probe("random bytes", () => randomBytes(200));
const web = probe("plain HTTP", () =>
  Buffer.from("GET / HTTP/1.1\r\nHost: server.test\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"),
);
const idOf = (text: string): Buffer => Buffer.from(text.replaceAll("-", ""), "hex");

/** What a client of ours says first, without anything that hides it. */
async function firstPacket(protocol: Protocol, options: Readonly<Record<string, unknown>>): Promise<Buffer> {
  const [near, far] = duplexPair();
  const dialer: Dialer = {
    connect: async () => near,
    associate: () => Promise.reject(new Error("not asked for")),
  };
  await using outbound = await openClient(protocol, { server: "127.0.0.1", port: 1, ...options }, { dialer });
  const stream = await outbound.connect(TARGET, { signal: new AbortController().signal, metadata: null });
  stream.on("error", () => {});
  const first = new Promise<Buffer>((resolve) => far.once("data", resolve));
  stream.write("GET / HTTP/1.1\r\n\r\n");
  const bytes = await first;
  stream.destroy();
  return bytes;
}

interface Sealed {
  readonly name: string;
  readonly server: Protocol;
  readonly serverOptions: Readonly<Record<string, unknown>>;
  readonly client: Protocol;
  readonly clientOptions: Readonly<Record<string, unknown>>;
  readonly wrong: Readonly<Record<string, unknown>>;
}

/** Silent towards clients without the key, and towards replays of clients with it. */
async function sealed({
  name,
  server,
  serverOptions,
  client,
  clientOptions,
  wrong,
}: Sealed): Promise<Probed> {
  const good = await firstPacket(client, clientOptions);
  const unknownClients: Buffer[] = [];
  for (let at = 0; at < 8; at++) unknownClients.push(await firstPacket(client, wrong));
  let turn = 0;
  const probes = [
    probe("wrong credential", () => unknownClients[turn++ % unknownClients.length] as Buffer),
    random,
    probe("replayed first packet", () => good),
    web,
    probe("ten bytes", () => randomBytes(10)),
  ];
  return { name, tls: false, silent: true, groups: [probes], open: () => openServer(server, serverOptions) };
}

interface Covered {
  readonly name: string;
  readonly protocol: Protocol;
  readonly options: object;
  readonly wrong: () => Buffer;
  /** What a user says. */
  readonly right: Buffer;
}

function covered({ name, protocol, options, wrong }: Covered): Probed {
  const probes = [probe("wrong credential", wrong), random, web];
  return {
    name,
    tls: true,
    silent: false,
    groups: [probes],
    open: () => openServer(protocol, { ...tls, ...options }),
  };
}

/** Below TLS: a replay of what a user has sent teaches no more than a replay of an unauthenticated client. */
async function recorded({ name, protocol, options, wrong, right }: Covered): Promise<Probed> {
  const open = () => openServer(protocol, { ...tls, ...options });
  await using serving = await open();
  const user = await recordFlight(serving.port, trusted, right);
  const unknownClient = await recordFlight(serving.port, trusted, wrong());
  const probes = [
    probe("replayed flight of a user", () => user),
    probe("replayed flight of an unauthenticated client", () => unknownClient),
  ];
  return { name: `${name}, recorded`, tls: false, silent: false, records: true, groups: [probes], open };
}

const basic = (user: string, pass: string): Buffer =>
  Buffer.from(
    `CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\nProxy-Authorization: Basic ${Buffer.from(`${user}:${pass}`).toString("base64")}\r\n\r\n`,
  );
const socksLogin = (username: string, pass: string): Buffer =>
  Buffer.concat([Buffer.from([5, 1, 2]), encodeCredentials({ username, password: pass })]);

export async function servers(): Promise<readonly Probed[]> {
  const aead = { cipher: "aes-128-gcm", password };
  const key = (fill: number): string => Buffer.alloc(16, fill).toString("base64");
  const modern = { cipher: "2022-blake3-aes-128-gcm", password: key(1) };
  const users = [{ username: "ann", password }];
  const request = (id: string) => encodeRequest(idOf(id), { flow: "", command: 1, destination: TARGET });
  const hidden: readonly Covered[] = [
    {
      name: "vless",
      protocol: vless,
      options: { users: [{ uuid }] },
      wrong: () => request(randomUUID()),
      right: request(uuid),
    },
    {
      name: "trojan",
      protocol: trojan,
      options: { users: [{ password }] },
      wrong: () => encodeTrojan(keyOf(randomUUID()), { command: 1, destination: TARGET }),
      right: encodeTrojan(keyOf(password), { command: 1, destination: TARGET }),
    },
    {
      name: "anytls",
      protocol: anytls,
      options: { users: { ann: password } },
      wrong: () => encodePreamble(passwordHash(randomUUID()), 30),
      right: encodePreamble(passwordHash(password), 30),
    },
  ];
  const asked: readonly Covered[] = [
    {
      name: "http over TLS",
      protocol: http,
      options: { users },
      wrong: () => basic("ann", randomUUID()),
      right: basic("ann", password),
    },
    {
      name: "socks over TLS",
      protocol: socks,
      options: { users },
      wrong: () => socksLogin("ann", randomUUID()),
      right: socksLogin("ann", password),
    },
  ];
  return [
    ...hidden.map(covered),
    ...(await Promise.all([...hidden, ...asked].map(recorded))),
    await sealed({
      name: "shadowsocks AEAD",
      server: shadowsocks,
      serverOptions: { ...aead, udp: false },
      client: ss,
      clientOptions: aead,
      wrong: { ...aead, password: "wrong" },
    }),
    await sealed({
      name: "shadowsocks 2022",
      server: shadowsocks,
      serverOptions: { ...modern, udp: false },
      client: ss,
      clientOptions: modern,
      wrong: { ...modern, password: key(2) },
    }),
    await sealed({
      name: "vmess",
      server: vmess,
      serverOptions: { users: [{ uuid }] },
      client: vmess,
      clientOptions: { uuid },
      wrong: { uuid: randomUUID() },
    }),
    {
      name: "http over TLS",
      tls: true,
      silent: false,
      answers: true,
      groups: [
        [
          probe("wrong credential", () => basic("ann", randomUUID())),
          probe("unknown user", () => basic(randomUUID(), password)),
        ],
        [random],
        [web],
      ],
      open: () => openServer(http, { ...tls, users }),
    },
    {
      name: "socks over TLS",
      tls: true,
      silent: false,
      groups: [
        [
          probe("wrong credential", () => socksLogin("ann", randomUUID())),
          probe("unknown user", () => socksLogin(randomUUID().slice(0, 8), password)),
        ],
        [probe("random bytes", () => Buffer.concat([Buffer.from([0x80]), randomBytes(199)])), web],
      ],
      open: () => openServer(socks, { ...tls, users }),
    },
  ];
}
