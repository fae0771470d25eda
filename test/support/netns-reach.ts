/**
 * Runs in a client's namespace: reads one line of JSON, a list of asks, and prints one line of JSON, whether each reached
 * the service that it asked for.
 */
import { createSocket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { connect, isIPv4, isIPv6, type Socket } from "node:net";
import { createInterface } from "node:readline";

export interface Ask {
  readonly by: "http" | "connect" | "socks4a" | "socks5" | "udp" | "plain" | "plain-udp" | "named";
  /** Of the proxy; of `plain` and `plain-udp` the name server for `host`; of `named` where the request that names `host` is sent. */
  readonly proxy: readonly [host: string, port: number];
  readonly host: string;
  readonly port: number;
}

const GET = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
const TIMEOUT_MS = 4_000;
/** Of the services, the Controller, and a listener of the proxy that was taken for a web server. */
const ANSWERS = ["reached", '"message"', "it takes CONNECT host:port"];

/** The address as SOCKS5 has it, in the type that its spelling says. */
function socksAddress({ host, port }: Ask): Buffer {
  const tail = Buffer.of(port >> 8, port & 0xff);
  if (isIPv4(host)) return Buffer.concat([Buffer.of(1, ...host.split(".").map(Number)), tail]);
  if (isIPv6(host)) return Buffer.concat([Buffer.of(4), ipv6Bytes(host), tail]);
  return Buffer.concat([Buffer.of(3, host.length), Buffer.from(host), tail]);
}

/** By the runtime's own reader of URLs, so that a mapped address stays one of IPv6. */
function ipv6Bytes(host: string): Buffer {
  const [head = "", tail = ""] = new URL(`http://[${host}]`).hostname.slice(1, -1).split("::");
  const groups = (text: string): number[] => (text === "" ? [] : text.split(":").map((x) => parseInt(x, 16)));
  const [front, back] = [groups(head), groups(tail)];
  const all = [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

/** What is said before the request itself, and how many bytes are answered on success. */
function greeting(ask: Ask): readonly (readonly [Uint8Array, number])[] {
  const { by, host, port } = ask;
  if (by === "socks5")
    return [
      [Buffer.of(5, 1, 0), 2],
      [Buffer.concat([Buffer.of(5, 1, 0), socksAddress(ask)]), 10],
    ];
  if (by === "socks4a")
    return [
      [Buffer.concat([Buffer.of(4, 1, port >> 8, port & 0xff, 0, 0, 0, 1, 0), Buffer.from(`${host}\0`)]), 8],
    ];
  if (by === "connect") return [[Buffer.from(`CONNECT ${bracketed(host)}:${port} HTTP/1.1\r\n\r\n`), 12]];
  return [];
}

async function overTcp(ask: Ask): Promise<boolean> {
  const [host, port] = ask.by === "plain" ? [await resolved(ask), ask.port] : ask.proxy;
  const get = ask.by === "named" ? GET.replace("x", `${ask.host}:${ask.port}`) : GET;
  const socket = connect(port, host).setTimeout(TIMEOUT_MS);
  socket.on("error", () => {}).on("timeout", () => socket.destroy());
  let got = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => (got = Buffer.concat([got, chunk])));
  for (const [said, size] of greeting(ask)) {
    got = Buffer.alloc(0);
    socket.write(said);
    while (got.length < size && !socket.closed && !socket.readableEnded) await stirs(socket);
  }
  if (!socket.closed)
    socket.write(ask.by === "http" ? `GET http://${bracketed(ask.host)}:${ask.port}/ HTTP/1.0\r\n\r\n` : get);
  if (!socket.closed) await new Promise((resolve) => socket.once("close", resolve));
  return ANSWERS.some((answer) => got.includes(answer));
}

async function resolved({ host, proxy }: Ask): Promise<string> {
  if (isIPv4(host) || isIPv6(host)) return host;
  const resolver = new Resolver();
  resolver.setServers([proxy.join(":")]);
  return (await resolver.resolve4(host))[0] as string;
}

function stirs(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      for (const event of ["data", "end", "close"]) socket.off(event, wake);
      resolve();
    };
    for (const event of ["data", "end", "close"]) socket.once(event, wake);
  });
}

/** By an association of SOCKS5. */
async function overUdp(ask: Ask): Promise<boolean> {
  const [proxyHost, proxyPort] = ask.proxy;
  const control = connect(proxyPort, proxyHost);
  control.on("error", () => {});
  control.write(Buffer.of(5, 1, 0));
  await once(control, "data");
  control.write(Buffer.of(5, 3, 0, 1, 0, 0, 0, 0, 0, 0));
  const [reply] = (await once(control, "data")) as [Buffer];
  const packet = Buffer.concat([Buffer.of(0, 0, 0), socksAddress(ask), Buffer.from("anybody?")]);
  const isReached = await answers(packet, reply.readUInt16BE(reply.length - 2), proxyHost);
  control.destroy();
  return isReached;
}

async function overPlainUdp(ask: Ask): Promise<boolean> {
  return await answers(Buffer.from("anybody?"), ask.port, await resolved(ask));
}

async function answers(packet: Uint8Array, port: number, host: string): Promise<boolean> {
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  const send = (): void => socket.send(packet, port, host);
  send();
  const again = setInterval(send, 300);
  const answer = await once(socket, "message", { signal: AbortSignal.timeout(1_500) }).catch(() => null);
  clearInterval(again);
  socket.close();
  return answer !== null;
}

const WAYS: Partial<Record<Ask["by"], (ask: Ask) => Promise<boolean>>> = {
  udp: overUdp,
  "plain-udp": overPlainUdp,
};

for await (const line of createInterface(process.stdin)) {
  const asks = JSON.parse(line) as Ask[];
  const reached = await Promise.all(asks.map((ask) => (WAYS[ask.by] ?? overTcp)(ask)));
  console.log(JSON.stringify(reached));
}
