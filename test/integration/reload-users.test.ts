/** A user whom the file no longer has loses all open sessions when it is read again, over every transport; the others keep theirs. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import type { Account } from "#core/inbound.ts";
import type { Protocol } from "#core/protocol.ts";
import type { Destination } from "#core/session.ts";
import { encodeBasic } from "#protocols/http/credentials.ts";
import { http } from "#protocols/http/index.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { ss } from "#protocols/shadowsocks/index.ts";
import { socks5 } from "#protocols/socks/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { COMMAND_CONNECT, encodeRequest, keyOf } from "#protocols/trojan/wire.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { echoed, outcome } from "../support/client.ts";
import { directDialer } from "../support/direct-accept.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient } from "../support/protocol-pair.ts";
import { startCore } from "../support/start-core.ts";
import { openWebOrigin } from "../support/web-origin.ts";

const { cert, key, fingerprint } = makeCertificate({ names: ["server.test"] });
const UUIDS = ["b831381d-6324-4d53-ad4f-8cda48b30811", "11111111-2222-3333-4444-555555555555"] as const;
const KEYS = [1, 2, 3].map((byte) => Buffer.alloc(16, byte).toString("base64"));
const PASSWORDS = ["one", "two"] as const;
const TLS_CLIENT = { tls: true, sni: "server.test", servername: "server.test", fingerprint };
const BARE = { "allow-insecure": true };
const TLS = { certificate: cert, "private-key": key };

interface Row {
  readonly name: string;
  readonly listener: object;
  /** The users at these indexes; the second time in another spelling. Null: the global ones. */
  readonly users: ((places: readonly number[], isAgain: boolean) => object) | null;
  /** Null: written out below, because our own client does not go without TLS. */
  readonly protocol: Protocol | null;
  readonly client: (place: 0 | 1) => object;
}

const unnamed = (field: string, secrets: readonly string[]) => (places: readonly number[]) =>
  places.map((place) => ({ [field]: secrets[place] }));

const ids = (places: readonly number[], isAgain: boolean) =>
  places.map((place) => {
    const uuid = UUIDS[place] as string;
    return { uuid: isAgain ? uuid.replaceAll("-", "").toUpperCase() : uuid };
  });
const accounts = (places: readonly number[]) =>
  places.map((place) => ({ username: `user${place}`, password: "the same" }));
const colon = ({ username, password }: Account) => `${username}:${password}`;
const account = (place: number) => accounts([place])[0] as object;

const ROWS: readonly Row[] = [
  { name: "http", listener: { type: "http" }, users: accounts, protocol: http, client: account },
  { name: "socks", listener: { type: "socks" }, users: accounts, protocol: socks5, client: account },
  { name: "mixed", listener: { type: "mixed" }, users: accounts, protocol: socks5, client: account },
  {
    name: "mixed in TLS",
    listener: { type: "mixed", ...TLS },
    users: accounts,
    protocol: http,
    client: (place) => ({ ...TLS_CLIENT, ...account(place) }),
  },
  { name: "accounts of all", listener: { type: "mixed" }, users: null, protocol: http, client: account },
  {
    name: "trojan bare",
    listener: { type: "trojan", ...BARE },
    users: unnamed("password", PASSWORDS),
    protocol: null,
    client: (place) => ({ password: PASSWORDS[place] }),
  },
  {
    name: "trojan",
    listener: { type: "trojan", ...TLS },
    users: unnamed("password", PASSWORDS),
    protocol: trojan,
    client: (place) => ({ ...TLS_CLIENT, password: PASSWORDS[place] }),
  },
  {
    name: "vless bare",
    listener: { type: "vless", ...BARE },
    users: ids,
    protocol: vless,
    client: (place) => ({ uuid: UUIDS[place] }),
  },
  {
    name: "vless",
    listener: { type: "vless", ...TLS },
    users: ids,
    protocol: vless,
    client: (place) => ({ ...TLS_CLIENT, uuid: UUIDS[place] }),
  },
  {
    name: "vmess",
    listener: { type: "vmess" },
    users: ids,
    protocol: vmess,
    client: (place) => ({ uuid: UUIDS[place], alterId: 0 }),
  },
  {
    name: "anytls",
    listener: { type: "anytls", ...TLS },
    users: (places) => Object.fromEntries(places.map((place) => [`user${place}`, PASSWORDS[place]])),
    protocol: anytls,
    client: (place) => ({ ...TLS_CLIENT, password: PASSWORDS[place] }),
  },
  {
    name: "shadowsocks",
    listener: { type: "shadowsocks", cipher: "2022-blake3-aes-128-gcm", password: KEYS[2] },
    users: (places) => Object.fromEntries(places.map((place) => [`user${place}`, KEYS[place]])),
    protocol: ss,
    client: (place) => ({ cipher: "2022-blake3-aes-128-gcm", password: `${KEYS[2]}:${KEYS[place]}` }),
  },
];

async function dial({ protocol, client }: Row, place: 0 | 1, port: number, to: Destination): Promise<Duplex> {
  const context = { signal: AbortSignal.timeout(10_000), metadata: null };
  if (protocol !== null)
    return (await openClient(protocol, { server: "127.0.0.1", port, ...client(place) })).connect(to, context);
  const stream = await directDialer.connect({ host: "localhost", ip: null, port }, context);
  stream.write(encodeRequest(keyOf(PASSWORDS[place]), { command: COMMAND_CONNECT, destination: to }));
  return stream;
}

test(
  "users who are gone from the file lose all open sessions at a reload, the others keep theirs",
  {
    timeout: 60_000,
  },
  async () => {
    const ports = await freePorts(ROWS.length);
    const text = (places: readonly number[], isAgain = false) =>
      JSON.stringify({
        "log-level": "info",
        rules: ["MATCH,DIRECT"],
        authentication: accounts(places).map(colon),
        listeners: ROWS.map(({ name, listener, users }, at) => ({
          name,
          listen: "127.0.0.1",
          port: ports[at],
          ...listener,
          users: users?.(places, isAgain),
        })),
      });
    await using origin = await openTcpOrigin(echo);
    await using core = await startCore(text([0, 1]));
    const streams: (readonly [string, gone: Duplex, stays: Duplex])[] = [];
    for (const [at, row] of ROWS.entries()) {
      const converse = async (place: 0 | 1): Promise<Duplex> => {
        const stream = await dial(row, place, ports[at] as number, origin.destination);
        stream.on("error", () => {});
        await echoed(stream, 200_000); // enough for workers to take it, where they can
        return stream;
      };
      streams.push([row.name, await converse(0), await converse(1)]);
    }
    const ends = streams.map(([, gone]) => Promise.race([once(gone, "end"), outcome(gone)]));
    const gone = Promise.all(ends);
    await core.reload(text([1], true)); // who is unnamed has another place now
    await gone;
    for (const [name, , stays] of streams)
      await assert.doesNotReject(echoed(stays, 50_000), `${name}: who stays was cut`);
    for (const [, gone, stays] of streams) for (const stream of [gone, stays]) stream.destroy();
  },
);

const mixedFor = (port: number) => (places: readonly number[]) =>
  JSON.stringify({
    "mixed-port": port,
    authentication: accounts(places).map(colon),
    rules: ["MATCH,DIRECT"],
  });

test("an answer to a plain request of a user who is gone is cut short", { timeout: 60_000 }, async () => {
  const [port] = (await freePorts(1)) as [number];
  const text = mixedFor(port);
  await using origin = await openWebOrigin((_, response) => void response.write("begun"));
  await using core = await startCore(text([0, 1]));
  const [gone, stays] = [0, 1].map((place) => {
    const client = connect(port, "127.0.0.1");
    const fields = `Host: x\r\nProxy-Authorization: ${encodeBasic(`user${place}`, "the same")}\r\n`;
    client.write(`GET ${origin.url}/ HTTP/1.1\r\n${fields}\r\n`);
    return client;
  }) as [Socket, Socket];
  for (const client of [gone, stays]) await once(client, "data");
  const end = outcome(gone);
  await core.reload(text([1]));
  assert.equal(await end, "ECONNRESET");
  assert.equal(stays.readyState, "open");
  stays.destroy();
});

test(
  "an association of a user who is gone ends, and one without a name goes on",
  { timeout: 60_000 },
  async () => {
    const [port] = (await freePorts(1)) as [number];
    const text = (places: readonly number[]) =>
      JSON.stringify({
        ...(JSON.parse(mixedFor(port)(places)) as object),
        "skip-auth-prefixes": ["127.0.0.2/32"],
      });
    await using core = await startCore(text([0, 1]));
    const associate = async (localAddress: string, ...words: readonly Buffer[]): Promise<Socket> => {
      const client = connect({ port, host: "127.0.0.1", localAddress });
      for (const word of [...words, Buffer.from([5, 3, 0, 1, 0, 0, 0, 0, 0, 0])]) {
        client.write(word);
        await once(client, "data");
      }
      return client;
    };
    const credentials = Buffer.from("\x01\x05user0\x08the same", "latin1");
    const gone = await associate("127.0.0.1", Buffer.from([5, 1, 2]), credentials);
    const stays = await associate("127.0.0.2", Buffer.from([5, 1, 0]));
    const end = outcome(gone);
    await core.reload(text([1]));
    assert.equal(await end, "ECONNRESET");
    assert.equal(stays.readyState, "open");
    stays.destroy();
  },
);

test("a listener that lets everybody in from now on cuts no connection", { timeout: 60_000 }, async () => {
  const [port] = (await freePorts(1)) as [number];
  const text = mixedFor(port);
  await using origin = await openTcpOrigin(echo);
  await using core = await startCore(text([0]));
  const client = await openClient(http, { server: "127.0.0.1", port, ...account(0) });
  const stream = await client.connect(origin.destination, {
    signal: AbortSignal.timeout(10_000),
    metadata: null,
  });
  await echoed(stream, 50_000);
  await core.reload(text([]));
  await echoed(stream, 50_000);
  stream.destroy();
});
