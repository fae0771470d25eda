/** A receiver of webhooks that behaves as it is told, and keeps what it has acknowledged. */
import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

export interface ReceivedEvent {
  readonly seq: number;
  readonly type: string;
  readonly subject: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Answered with a success, in their order. */
  readonly received: readonly ReceivedEvent[];
  /** Of every request, good or not. */
  readonly requests: () => number;
  readonly faults: readonly string[];
}

/** Answers the n-th request, from 0; absent members of the answer are those of a success. */
export type Behave = (at: number, response: ServerResponse) => boolean;

export const WELL: Behave = () => true;

/** Answers that are no success. */
export const WRONG: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "answers 500": (response) => void response.writeHead(500).end(),
  redirects: (response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
  "closes without an answer": (response) => void response.destroy(),
  "closes in the middle": (response) => {
    response.writeHead(200, { "content-length": 100 }).write("half");
    setTimeout(() => response.destroy(), 20);
  },
};

/** A success, that many milliseconds late. */
export const slowBy =
  (delayMs: number): Behave =>
  (_at, response) => {
    const end = response.end.bind(response);
    response.end = (() => (setTimeout(end, delayMs), response)) as typeof response.end;
    return true;
  };

export const SIGNING_SECRET = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;

/**
 * `behave` false: it has answered by itself, and the event does not count as received. `nowMs`: the clock of the sender,
 * where it is a shifted one.
 */
export async function openReceiver(
  behave: Behave = WELL,
  port = 0,
  nowMs: () => number = Date.now,
): Promise<Receiver> {
  const received: ReceivedEvent[] = [];
  const faults: string[] = [];
  let requests = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const fault = faultOf(request, body, nowMs());
      if (fault !== null) faults.push(fault);
      if (!behave(requests++, response)) return;
      received.push(JSON.parse(body) as ReceivedEvent);
      response.writeHead(204).end();
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const own = (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${own}/hook?key=hidden`,
    port: own,
    received,
    faults,
    requests: () => requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** By the letter of the scheme, not by our own code. */
function faultOf({ headers }: IncomingMessage, body: string, nowMs: number): string | null {
  const id = String(headers["webhook-id"]);
  const timestamp = Number(headers["webhook-timestamp"]);
  const key = Buffer.from(SIGNING_SECRET.slice("whsec_".length), "base64");
  const right = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  if (headers["webhook-signature"] !== `v1,${right}`) return `the signature of ${id} is wrong`;
  if (Math.abs(nowMs / 1000 - timestamp) > 300) return `the time of ${id} is ${timestamp}`;
  if (!/^weir_[0-9a-f]{12}_\d+$/.test(id)) return `the id is ${id}`;
  return null;
}

/** Numbers of a subject that came before a lower one that had not come yet. */
export function disorderOf(received: readonly ReceivedEvent[]): readonly string[] {
  const highest = new Map<string, number>();
  const seen = new Set<number>();
  return received.flatMap(({ seq, subject }) => {
    const before = highest.get(subject) ?? 0;
    highest.set(subject, Math.max(before, seq));
    const isNew = !seen.has(seq);
    seen.add(seq);
    return isNew && seq < before ? [`${subject}: ${seq} behind ${before}`] : [];
  });
}
