/** A user whom the file no longer has loses what is open when it is read again, whatever lies below; the others keep it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import type { Protocol } from "#core/protocol.ts";
import type { Destination } from "#core/session.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { ss } from "#protocols/shadowsocks/index.ts";
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
  /** Of those users whose place is in the list. */
  readonly users: (places: readonly number[]) => object;
  /** Null: written out below, because our own client does not go without TLS. */
  readonly protocol: Protocol | null;
  readonly client: (place: 0 | 1) => object;
}

const unnamed = (field: string, secrets: readonly string[]) => (places: readonly number[]) =>
  places.map((place) => ({ [field]: secrets[place] }));

const ROWS: readonly Row[] = [
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
    users: unnamed("uuid", UUIDS),
    protocol: vless,
    client: (place) => ({ uuid: UUIDS[place] }),
  },
  {
    name: "vless",
    listener: { type: "vless", ...TLS },
    users: unnamed("uuid", UUIDS),
    protocol: vless,
    client: (place) => ({ ...TLS_CLIENT, uuid: UUIDS[place] }),
  },
  {
    name: "vmess",
    listener: { type: "vmess" },
    users: unnamed("uuid", UUIDS),
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
  "users of the file that are gone lose what is open at a reload, those who stay do not",
  {
    timeout: 60_000,
  },
  async () => {
    const ports = await freePorts(ROWS.length);
    const text = (places: readonly number[]) =>
      JSON.stringify({
        "log-level": "info",
        rules: ["MATCH,DIRECT"],
        listeners: ROWS.map(({ name, listener, users }, at) => ({
          name,
          listen: "127.0.0.1",
          port: ports[at],
          ...listener,
          users: users(places),
        })),
      });
    await using origin = await openTcpOrigin(echo);
    await using core = await startCore(text([0, 1]));
    const streams: (readonly [string, gone: Duplex, stays: Duplex])[] = [];
    for (const [at, row] of ROWS.entries()) {
      const converse = async (place: 0 | 1): Promise<Duplex> => {
        const stream = await dial(row, place, ports[at] as number, origin.destination);
        stream.on("error", () => {});
        await echoed(stream, 200_000); // enough for relay threads to take it, where they can
        return stream;
      };
      streams.push([row.name, await converse(0), await converse(1)]);
    }
    const ends = streams.map(([, gone]) => Promise.race([once(gone, "end"), outcome(gone)]));
    core.write(text([1])); // who is unnamed has another place now
    process.kill(core.pid, "SIGHUP");
    await Promise.all(ends);
    for (const [name, , stays] of streams)
      await assert.doesNotReject(echoed(stays, 50_000), `${name}: who stays was cut`);
    for (const [, gone, stays] of streams) for (const stream of [gone, stays]) stream.destroy();
  },
);
