/** Asks one question, as a client of the DNS listener does. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import type { Ip } from "#core/session.ts";
import { decodeMessage, encodeMessage, type Message } from "#dns/message.ts";
import { ipFromBytes } from "#net/address/ip.ts";

export const TYPE_A = 1;
export const TYPE_AAAA = 28;

/** A recursive question in wire form. */
export function questionOf(name: string, type = TYPE_A, id = 4711): Uint8Array {
  const question = { name, type, class: 1 };
  const empty = { answers: [], authorities: [], additionals: [] };
  return encodeMessage({ id, flags: 0x0100, questions: [question], ...empty });
}

export async function askUdp(
  port: number,
  name: string,
  type = TYPE_A,
  host = "127.0.0.1",
): Promise<Message> {
  const socket = createSocket("udp4");
  try {
    socket.send(questionOf(name, type), port, host);
    const [bytes] = (await once(socket, "message", { signal: AbortSignal.timeout(10_000) })) as [Buffer];
    return decodeMessage(bytes);
  } finally {
    socket.close();
  }
}

export function addressesIn({ answers }: Message): readonly Ip[] {
  return answers
    .filter(({ type }) => type === TYPE_A || type === TYPE_AAAA)
    .map(({ data }) => ipFromBytes(data));
}
