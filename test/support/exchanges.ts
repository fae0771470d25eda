/** What clients say to plain listeners: every protocol, good and bad. What comes back must not depend on the acceptor. */
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

export interface Exchange {
  readonly name: string;
  readonly listener: "mixed" | "socks" | "http" | "tunnel";
  readonly says: Buffer;
}

const port = (number: number): number[] => [number >> 8, number & 255];
const text = (words: string): Buffer => Buffer.from(words, "latin1");
type Part = number | readonly number[] | string;

const bytes = (...parts: readonly Part[]): Buffer =>
  Buffer.concat(
    parts.map((part) =>
      typeof part === "string" ? text(part) : Buffer.from(typeof part === "number" ? [part] : part),
    ),
  );

const GREETING = [5, 1, 0];
const name = (host: string): Buffer => bytes(3, host.length, host);

/** Requests that are cut at every byte. `to` echoes; the tunnel begins with `ping`. */
export function plainRequests(to: number): readonly Exchange[] {
  return [
    {
      name: "socks5, address",
      listener: "mixed",
      says: bytes(GREETING, [5, 1, 0, 1, 127, 0, 0, 1], port(to)),
    },
    {
      name: "socks5, name",
      listener: "socks",
      says: bytes([5, 2, 2, 0], [5, 1, 0], [...name("origin.test")], port(to)),
    },
    { name: "socks4", listener: "mixed", says: bytes([4, 1], port(to), [127, 0, 0, 1], "me", 0) },
    {
      name: "socks4a",
      listener: "socks",
      says: bytes([4, 1], port(to), [0, 0, 0, 7], "me", 0, "origin.test", 0),
    },
    { name: "CONNECT", listener: "mixed", says: text(`CONNECT 127.0.0.1:${to} HTTP/1.1\r\nHost: x\r\n\r\n`) },
    { name: "CONNECT 1.0", listener: "http", says: text(`CONNECT origin.test:${to} HTTP/1.0\r\n\r\n`) },
  ];
}

/** Whatever else a client may say first. */
export function otherRequests(to: number): readonly Exchange[] {
  const socks5 = (...rest: readonly Part[]): Buffer => bytes(GREETING, ...rest);
  const on = (listener: Exchange["listener"], rows: Readonly<Record<string, Buffer>>): Exchange[] =>
    Object.entries(rows).map(([what, says]) => ({ name: `${listener}: ${what}`, listener, says }));
  const connectTo = (host: string): Buffer => text(`CONNECT ${host}:${to} HTTP/1.1\r\n\r\n`);
  return [
    ...on("tunnel", { bytes: text("straight"), nothing: Buffer.alloc(0) }),
    ...on("mixed", {
      nothing: Buffer.alloc(0),
      "no method that is wanted here": bytes([5, 1, 1]),
      "a password without a user": bytes([5, 1, 2], [1, 1, 97, 1, 98], [5, 1, 0, 1, 127, 0, 0, 1], port(to)),
      BIND: socks5([5, 2, 0, 1, 127, 0, 0, 1], port(to)),
      "an unknown command": socks5([5, 9, 0, 1, 127, 0, 0, 1], port(to)),
      "an unknown address type": socks5([5, 1, 0, 9, 1, 2, 3, 4, 5, 6]),
      "an empty name": socks5([5, 1, 0, 3, 0], port(to)),
      "a name with a blank": socks5([5, 1, 0], [...name("a b")], port(to)),
      "another version behind the greeting": socks5([4, 1, 0, 1, 127, 0, 0, 1], port(to)),
      "half a request": socks5([5, 1, 0, 1, 127]),
      "refused, socks5": socks5([5, 1, 0, 1, 127, 0, 0, 1, 0, 1]),
      "refused, socks5 by IPv6": socks5([5, 1, 0, 4, ...Buffer.alloc(15), 1, 0, 1]),
      "refused, socks4": bytes([4, 1, 0, 1, 127, 0, 0, 1, 0]),
      "refused, CONNECT": text("CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n"),
      "no such name": connectTo("nowhere.invalid"),
      rejected: connectTo("reject.test"),
      "rejected, socks5": socks5([5, 1, 0], [...name("reject.test")], port(to)),
      "by another proxy": Buffer.concat([connectTo("via.test"), text("through")]),
      "by another proxy, socks5": Buffer.concat([
        socks5([5, 1, 0], [...name("via.test")], port(to)),
        text("through"),
      ]),
      "CONNECT with a body": text(`CONNECT 127.0.0.1:${to} HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc`),
      "CONNECT without a port number": text("CONNECT 127.0.0.1:x HTTP/1.1\r\n\r\n"),
      "CONNECT with a folded line": text(`CONNECT 127.0.0.1:${to} HTTP/1.1\r\nA: b\r\n c\r\n\r\n`),
      "half a CONNECT": text("CONNECT 127.0"),
      "a long head": text(`CONNECT 127.0.0.1:${to} HTTP/1.1\r\nA: ${"b".repeat(700)}\r\n\r\nlong`),
      "a longer head": text(`CONNECT 127.0.0.1:${to} HTTP/1.1\r\nA: ${"b".repeat(9_000)}\r\n\r\nlonger`),
      "SOCKS4 with a long user": bytes([4, 1], port(to), [127, 0, 0, 1], "u".repeat(300), 0),
      "SOCKS4 BIND": bytes([4, 2], port(to), [127, 0, 0, 1], 0),
      "no protocol at all": bytes([22, 3, 1, 0, 5, 1, 0, 0, 1, 3]),
    }),
    {
      name: "mixed: GET",
      listener: "mixed",
      says: text(`GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\nConnection: close\r\n\r\n`),
    },
    ...on("socks", { HTTP: connectTo("127.0.0.1"), "version 6": bytes([6, 1, 0]) }),
    ...on("http", { SOCKS5: socks5([5, 1, 0, 1, 127, 0, 0, 1], port(to)) }),
  ];
}

/** All that comes back, and how it ends; the client ends behind its last word. `cutAt`: after so many bytes it pauses. */
export async function transcript(
  to: number,
  { says }: Pick<Exchange, "says">,
  cutAt: number | null = null,
): Promise<string> {
  const socket = connect({ port: to, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  const received: Buffer[] = [];
  let fault = "";
  socket.on("data", (chunk: Buffer) => received.push(chunk));
  socket.on("error", (error: NodeJS.ErrnoException) => (fault = error.code ?? error.message));
  socket.once("end", () => socket.end());
  const closed = new Promise((resolve) => socket.once("close", resolve)); // `once` would reject for a fault
  await Promise.race([new Promise((resolve) => socket.once("connect", resolve)), closed]);
  if (cutAt !== null) {
    socket.write(says.subarray(0, cutAt));
    await delay(5); // what is sent now comes alone on most machines; the outcome must not depend on it
  }
  socket.write(says.subarray(cutAt ?? 0));
  socket.end();
  await closed;
  return `${Buffer.concat(received).toString("latin1")}|${fault}`;
}
