/**
 * A core with a listener of every kind, under policies of every kind, between clients and an origin that counts raw
 * bytes. Protocols with handshakes of their own are spoken by a second core, which also is the node `hop`.
 */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { makeCertificate } from "./certificate.ts";
import { pieces, type Order } from "./flow-order.ts";
import { freePorts } from "./free-ports.ts";
import { startCore, type Core } from "./start-core.ts";
import { openTunnel, postThrough, type TunnelKind } from "./tunnels.ts";
import { datagramsThrough } from "./udp-flows.ts";

export interface Flow {
  readonly kind: string;
  /** 2, 3 or 4: the client is 127.0.0.<n>. Flows of the second core come from 127.0.0.1 whatever stands here. */
  readonly device: number;
  /** 11, 12 or 13: the origin is asked for as 127.0.0.<n>, which decides rule, group and node. */
  readonly target: number;
  readonly upload: number;
  readonly download: number;
}

export interface Seen {
  upload: number;
  download: number;
  /** TCP connections, and flows of datagrams. */
  streams: number;
  datagrams: number;
}

export interface Field extends AsyncDisposable {
  readonly core: Core;
  readonly controller: number;
  readonly kinds: readonly string[];
  /** What the origin received and sent, by the key of a report series. */
  readonly seen: ReadonlyMap<string, Seen>;
  /** Moves the bytes; rejects where others arrive. */
  run(flow: Flow): Promise<void>;
}

const SPOKEN = ["vless", "trojan", "vmess", "ss", "anytls", "hysteria2", "tuic"] as const;
const DIRECTLY: readonly TunnelKind[] = [
  "connect",
  "socks4",
  "socks5",
  "mixed-socks5",
  "mixed-connect",
  "tunnel",
];
const UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
const PASSWORD = "a password of the tests";

/** What a flow counts for besides `global:all`. */
const BY_TARGET: Readonly<Record<number, readonly string[]>> = {
  11: ["rule:r11", "target:node-direct", "target:group-proxy"],
  12: ["rule:r12", "target:node-direct"],
  13: ["rule:r13", "target:node-hop", "target:group-outer"],
};

function keysOfFlow(device: number, target: number): readonly string[] {
  const single = ["global:all", "device:lan", `device:d${device}`, ...(BY_TARGET[target] ?? [])];
  const pairs = single.flatMap((one, at) =>
    single.slice(at + 1).map((other) => (one < other ? `${one}|${other}` : `${other}|${one}`)),
  );
  return [...single, ...pairs];
}

const policies = (limits: string) => `
  enabled: true
  global: { id: all${limits} }
  devices:
    - { id: lan, source-cidrs: [127.0.0.0/8]${limits} }
${[1, 2, 3, 4].map((n) => `    - { id: d${n}, source-cidrs: [127.0.0.${n}/32]${limits} }`).join("\n")}
  rules:
    - { id: r11, type: IP-CIDR, payload: 127.0.0.11/32, target: Proxy${limits} }
    - { id: r12, type: IP-CIDR, payload: 127.0.0.12/32, target: DIRECT${limits} }
    - { id: r13, type: IP-CIDR, payload: 127.0.0.13/32, target: Outer${limits} }
  targets:
    - { id: node-direct, kind: proxy, target: DIRECT${limits} }
    - { id: node-hop, kind: proxy, target: hop${limits} }
    - { id: group-proxy, kind: group, target: Proxy${limits} }
    - { id: group-outer, kind: group, target: Outer${limits} }
`;

/** Limits and quotas that are at work and never reached. */
const WIDE =
  ", upload-bps: 40000000000, download-bps: 40000000000, quota: { total-bytes: 900000000000000, window: 30d }";

export async function openEveryInbound(): Promise<Field> {
  await using undo = new AsyncDisposableStack();
  const seen = new Map<string, Seen>();
  const record: Counting = (device, target, upload, download, { streams = 0, datagrams = 0 }) => {
    for (const key of keysOfFlow(device, target)) {
      const sum = seen.get(key) ?? { upload: 0, download: 0, streams: 0, datagrams: 0 };
      sum.upload += upload;
      sum.download += download;
      sum.streams += streams;
      sum.datagrams += datagrams;
      seen.set(key, sum);
    }
  };
  const origin = await openOrigin(record, undo);
  const names = ["http", "socks", "mixed", "tunnel", ...SPOKEN, "controller"] as const;
  const ports = await freePorts(names.length + SPOKEN.length + 1);
  const own = Object.fromEntries(names.map((name, at) => [name, ports[at]])) as Record<
    (typeof names)[number],
    number
  >;
  const second = Object.fromEntries(
    [...SPOKEN, "hop"].map((name, at) => [name, ports[names.length + at]]),
  ) as Record<(typeof SPOKEN)[number] | "hop", number>;
  const certificate = makeCertificate({ names: ["example.com"] });
  undo.use(await startCore(secondConfig(own, second, certificate.fingerprint)));
  const core = undo.use(await startCore(firstConfig(own, second.hop, origin, certificate)));
  const listening: Partial<Record<TunnelKind, number>> = {
    connect: own.http,
    socks4: own.socks,
    socks5: own.socks,
    tunnel: own.tunnel,
  };
  const run = async (flow: Flow): Promise<void> => {
    const { kind, upload, download } = flow;
    const from = `127.0.0.${flow.device}`;
    const target = kind.startsWith("tunnel") ? 11 : flow.target;
    const to = { host: `127.0.0.${target}`, port: origin };
    const [protocol, network] = kind.split("/") as [string, string | undefined];
    const spoken = SPOKEN.find((name) => name === protocol);
    const device = spoken === undefined ? flow.device : 1;
    const order = { device, target, upload, download };
    if (network === "udp") {
      const port = spoken === undefined ? (protocol === "mixed" ? own.mixed : own.socks) : second[spoken];
      const tunnel = protocol === "tunnel" ? own.tunnel : null;
      return datagramsThrough({ proxy: port, tunnel, from, to }, order);
    }
    if (kind === "http") return postThrough(own.http, from, to, order);
    const tunnelKind = spoken === undefined ? (kind as TunnelKind) : "socks5";
    const port = spoken === undefined ? (listening[tunnelKind] ?? own.mixed) : second[spoken];
    await exchange(await openTunnel(tunnelKind, port, from, to), order);
  };
  const owned = undo.move();
  return {
    core,
    controller: own.controller,
    kinds: [
      "http",
      ...DIRECTLY,
      ...SPOKEN,
      "socks/udp",
      "mixed/udp",
      "tunnel/udp",
      ...SPOKEN.map((name) => `${name}/udp`),
    ],
    seen,
    run,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Line and padding up, the answer down; ends when all of it is there. */
async function exchange(socket: Socket, { device, target, upload, download }: Order): Promise<void> {
  let arrived = 0;
  const closed = once(socket, "close");
  socket.on("data", (chunk: Buffer) => (arrived += chunk.length));
  socket.on("end", () => socket.end());
  socket.resume();
  const line = `T ${device} ${target} ${upload} ${download}\n`;
  socket.write(line);
  for (const piece of pieces(Math.max(0, upload - line.length)))
    if (!socket.write(piece)) await Promise.race([once(socket, "drain"), closed]);
  await closed;
  if (arrived !== download) throw new Error(`${arrived} of ${download} bytes arrived`);
}

type Counting = (
  device: number,
  target: number,
  upload: number,
  download: number,
  begun: { readonly streams?: number; readonly datagrams?: number },
) => void;

/** TCP on all of loopback, UDP on the three addresses; answers with its port. */
async function openOrigin(record: Counting, undo: AsyncDisposableStack): Promise<number> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => answer(socket, record));
  server.listen({ port: 0, host: "0.0.0.0", backlog: 1024 });
  await once(server, "listening");
  undo.defer(() => {
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  for (const address of ["127.0.0.11", "127.0.0.12", "127.0.0.13"]) {
    const socket: UdpSocket = createSocket({ type: "udp4", recvBufferSize: 1 << 20 });
    const known = new Set<string>();
    socket.on("message", (bytes, from) => {
      const [, device, target, size, flow = ""] =
        bytes.toString("latin1", 0, 64).split("\n")[0]?.split(" ") ?? [];
      const reply = Buffer.alloc(Number(size), "reply");
      record(Number(device), Number(target), bytes.length, reply.length, {
        datagrams: known.has(flow) ? 0 : 1,
      });
      known.add(flow);
      socket.send(reply, from.port, from.address);
    });
    socket.bind(port, address);
    await once(socket, "listening");
    undo.defer(() => {
      socket.close();
    });
  }
  return port;
}

/**
 * `T device target upload download`, or the same as the path of an HTTP request; every raw byte counts. It answers at once:
 * a client of HTTP may hang up on the answer before all that it had to say has been passed on.
 */
function answer(socket: Socket, record: Counting): void {
  let head = "";
  let received = 0;
  let wanted = -1;
  let finish = (): void => {};
  for (const event of ["end", "close"]) socket.once(event, () => finish());
  socket.on("error", () => {}); // shows as a difference
  socket.on("data", (chunk: Buffer) => {
    received += chunk.length;
    if (wanted < 0) {
      head += chunk.toString("latin1");
      const isHttp = head.startsWith("POST ");
      const end = head.indexOf(isHttp ? "\r\n\r\n" : "\n");
      if (end < 0) return;
      const words = (
        isHttp
          ? (head.split(" ")[1] ?? "").replace(/^.*\/(?=T)/, "").replaceAll("/", " ")
          : head.slice(0, end)
      ).split(" ");
      const [, device = 0, target = 0, upload = 0, download = 0] = words.map(Number);
      wanted = isHttp ? end + 4 + upload : upload;
      const answerHead = isHttp
        ? `HTTP/1.1 200 OK\r\nContent-Length: ${download}\r\nConnection: close\r\n\r\n`
        : "";
      const sending = send(socket, answerHead, download);
      finish = () => {
        finish = () => {};
        void sending.then(() => {
          record(device, target, received, answerHead.length + download, { streams: 1 });
          socket.end();
        });
      };
    }
    if (received >= wanted) finish();
  });
}

async function send(socket: Socket, head: string, size: number): Promise<void> {
  if (head !== "") socket.write(head, "latin1");
  for (const piece of pieces(size))
    if (!socket.write(piece)) await Promise.race([once(socket, "drain"), once(socket, "close")]);
}

function firstConfig(
  own: Readonly<Record<string, number>>,
  hop: number,
  origin: number,
  { cert, key }: { readonly cert: string; readonly key: string },
): string {
  const tls = `certificate: ${JSON.stringify(cert)}, private-key: ${JSON.stringify(key)}`;
  const at = (name: string, type = name) =>
    `name: ${name}, type: ${type}, listen: 127.0.0.1, port: ${own[name]}`;
  return `
external-controller: 127.0.0.1:${own["controller"]}
log-level: info
listeners:
  - { ${at("http")} }
  - { ${at("socks")}, udp: true }
  - { ${at("mixed")}, udp: true }
  - { ${at("tunnel")}, network: [tcp, udp], target: "127.0.0.11:${origin}" }
  - { ${at("vless")}, users: [{ uuid: ${UUID} }], ${tls} }
  - { ${at("trojan")}, users: [{ password: ${PASSWORD} }], ${tls} }
  - { ${at("vmess")}, users: [{ uuid: ${UUID} }] }
  - { ${at("ss", "shadowsocks")}, cipher: aes-128-gcm, password: ${PASSWORD}, udp: true }
  - { ${at("anytls")}, users: { ada: ${PASSWORD} }, ${tls} }
  - { ${at("hysteria2")}, users: { ada: ${PASSWORD} }, ${tls} }
  - { ${at("tuic")}, users: { ${UUID}: ${PASSWORD} }, ${tls} }
proxies:
  - { name: hop, type: socks5, server: 127.0.0.1, port: ${hop}, udp: true }
proxy-groups:
  - { name: Proxy, type: select, proxies: [DIRECT] }
  - { name: Outer, type: select, proxies: [hop] }
rules:
  - IP-CIDR,127.0.0.11/32,Proxy
  - IP-CIDR,127.0.0.12/32,DIRECT
  - IP-CIDR,127.0.0.13/32,Outer
  - MATCH,REJECT
traffic-control:
${policies(WIDE)}
`;
}

function secondConfig(
  first: Readonly<Record<string, number>>,
  own: Readonly<Record<string, number>>,
  fingerprint: string,
): string {
  const at = (name: string) =>
    `name: ${name}, type: ${name}, server: 127.0.0.1, port: ${first[name]}, udp: true`;
  const tls = `fingerprint: "${fingerprint}"`;
  const listeners = Object.entries(own).map(
    ([name, port]) =>
      `  - { name: in-${name}, type: mixed, listen: 127.0.0.1, port: ${port}, udp: true, proxy: ${name === "hop" ? "DIRECT" : name} }`,
  );
  return `
log-level: info
listeners:
${listeners.join("\n")}
proxies:
  - { ${at("vless")}, uuid: ${UUID}, tls: true, servername: example.com, ${tls} }
  - { ${at("trojan")}, password: ${PASSWORD}, sni: example.com, ${tls} }
  - { ${at("vmess")}, uuid: ${UUID}, xudp: true }
  - { ${at("ss")}, cipher: aes-128-gcm, password: ${PASSWORD} }
  - { ${at("anytls")}, password: ${PASSWORD}, sni: example.com, ${tls} }
  - { ${at("hysteria2")}, password: ${PASSWORD}, sni: example.com, ${tls} }
  - { ${at("tuic")}, uuid: ${UUID}, password: ${PASSWORD}, sni: example.com, ${tls} }
rules: ["MATCH,DIRECT"]
`;
}
