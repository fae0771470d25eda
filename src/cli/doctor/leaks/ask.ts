/** One question to a server by a socket of this program, as another program of this machine would ask it. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { messageOf } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import { familyOf, parseIp } from "#net/address/ip.ts";
import { datagramDescriptorOf } from "#net/udp/datagram-descriptor.ts";
import { bindDescriptor } from "#platform/portable.ts";

/** How long an answer is waited for; a datagram is sent again at these times. */
const ANSWER_MS = 4_000;
const AGAIN_MS = 500;
const MOST_PAGE_BYTES = 65_536;

/** What the socket is bound to. */
export interface Bound {
  readonly address?: Ip;
  readonly device?: string;
}

export interface Outcome {
  /** 0: there was no socket. */
  readonly sourcePort: number;
  /** Code of the error with which it failed at once; null: it left, or seemed to. */
  readonly refused: string | null;
  readonly answer: Buffer | null;
}

export interface Server {
  /** An address, perhaps with a zone. */
  readonly host: string;
  readonly port: number;
}

/** One datagram; `settled` keeps the socket open until the other side has been looked at. */
export async function askByUdp(
  { host, port }: Server,
  payload: Uint8Array,
  bound: Bound,
  settled: () => Promise<unknown>,
): Promise<Outcome> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  const { promise, resolve } = Promise.withResolvers<Omit<Outcome, "sourcePort">>();
  const refuse = (error: Error): void => resolve({ refused: codeOf(error), answer: null });
  socket.on("error", refuse).on("message", (answer) => resolve({ refused: null, answer }));
  let again: NodeJS.Timeout | undefined;
  let late: NodeJS.Timeout | undefined;
  let sourcePort = 0;
  try {
    await bindUdp(socket, bound);
    socket.connect(port, host);
    await once(socket, "connect");
    sourcePort = socket.address().port;
    const send = (): void => socket.send(payload, (error) => void (error && refuse(error)));
    again = setInterval(send, AGAIN_MS);
    late = setTimeout(resolve, ANSWER_MS, { refused: null, answer: null });
    send();
    const outcome = await promise;
    await settled();
    return { sourcePort, ...outcome };
  } catch (error) {
    return { sourcePort, refused: codeOf(error), answer: null };
  } finally {
    clearInterval(again);
    clearTimeout(late);
    socket.close();
  }
}

async function bindUdp(socket: UdpSocket, { address, device }: Bound): Promise<void> {
  const bound = once(socket, "listening"); // rejects at an error
  socket.bind(0, address);
  await bound;
  if (device !== undefined) bindDescriptor(datagramDescriptorOf(socket), device);
}

/** Sends `text` and reads until `enough`, the end, or no more comes. `tlsName`: by TLS, for that name. */
export async function askByTcp(
  { host, port }: Server,
  text: Uint8Array,
  { address, tlsName, enough }: Bound & { tlsName: string | null; enough: (got: Buffer) => boolean },
  settled: () => Promise<unknown>,
): Promise<Outcome> {
  const raw = connect({ host, port, ...(address === undefined ? {} : { localAddress: address }) });
  const stream: Socket =
    tlsName === null
      ? raw
      : connectTls({
          socket: raw,
          rejectUnauthorized: false,
          ...(parseIp(tlsName) ? {} : { servername: tlsName }),
        });
  const { promise, resolve } = Promise.withResolvers<string | null>();
  let got = Buffer.alloc(0);
  const end = (error: Error): void => resolve(codeOf(error));
  raw.on("error", end);
  stream
    .on("error", end)
    .on("end", () => resolve(null))
    .on("data", (chunk: Buffer) => {
      got = Buffer.concat([got, chunk]);
      if (enough(got) || got.length > MOST_PAGE_BYTES) resolve(null);
    });
  let sourcePort = 0;
  raw.on("connect", () => (sourcePort = raw.localPort ?? 0));
  const late = setTimeout(resolve, ANSWER_MS, null);
  stream.write(text);
  const failed = await promise;
  await settled();
  clearTimeout(late);
  raw.destroy();
  return {
    sourcePort,
    refused: got.length === 0 ? failed : null,
    answer: got.length === 0 ? null : got,
  };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : messageOf(error);
}

/** Every address in a text. */
export function addressesIn(text: string): readonly Ip[] {
  const words = text.match(/[0-9a-f:.]{3,45}/gi) ?? [];
  const found = words.map((word) => parseIp(word.replace(/[.:]$/, ""))).filter((ip) => ip !== null);
  return [...new Set(found)];
}

export const familyOfHost = (host: string): 4 | 6 | null => {
  const ip = parseIp(host);
  return ip === null ? null : familyOf(ip);
};
