/** Where a server forwards connections that do not speak its protocol: to a web server that looks harmless. */
import type { Duplex } from "node:stream";
import * as z from "zod";
import { int, list, text } from "#core/fields.ts";
import type { Dialer } from "#core/outbound.ts";
import { abortStream } from "#core/stream.ts";
import { describe, type ConnectionEnds } from "#net/listen/accept.ts";
import { proxyHeader } from "#net/listen/proxy-header.ts";
import { destination } from "#net/address/destination-field.ts";

const entry = z.object({
  name: text().default(""),
  alpn: text().default(""),
  path: text().default(""),
  dest: destination(),
  xver: int(0, 2).default(0),
});
export type Fallback = z.output<typeof entry>;

export const fallbackFields = { fallbacks: list(entry).default([]) };

export interface Approach {
  readonly serverName: string | null;
  readonly alpn: string | null;
  /** The first bytes that came. */
  readonly first: Buffer;
}

/** By name (exact, else the longest one contained in it), then ALPN, then path; at each level an empty entry is the default. */
export function chooseFallback(fallbacks: readonly Fallback[], approach: Approach): Fallback | null {
  const name = bestName(fallbacks, approach.serverName ?? "");
  const named = fallbacks.filter((one) => one.name.toLowerCase() === name);
  const byAlpn = preferred(named, (one) => one.alpn, approach.alpn ?? "");
  return preferred(byAlpn, (one) => one.path, pathIn(approach.first) ?? "")[0] ?? null;
}

function bestName(fallbacks: readonly Fallback[], serverName: string): string {
  const names = fallbacks.map((one) => one.name.toLowerCase()).filter((name) => name !== "");
  if (names.includes(serverName)) return serverName;
  const contained = names.filter((name) => serverName.includes(name));
  return contained.sort((a, b) => b.length - a.length)[0] ?? "";
}

function preferred(
  all: readonly Fallback[],
  of: (one: Fallback) => string,
  wanted: string,
): readonly Fallback[] {
  const exact = all.filter((one) => of(one) === wanted);
  return exact.length > 0 ? exact : all.filter((one) => of(one) === "");
}

/**
 * The path of what looks like an HTTP/1 request: a slash behind a method of 3 to 7 letters, a blank within 64 bytes.
 */
function pathIn(first: Buffer): string | null {
  for (let at = 4; at <= 8 && at < first.length; at++) {
    if (first[at] !== 0x2f || first[at - 1] !== 0x20) continue;
    const end = first.indexOf(0x20, at);
    if (end < 0 || end > 64 + at) return null;
    const query = first.indexOf(0x3f, at);
    return first.toString("latin1", at, query >= 0 && query < end ? query : end);
  }
  return null;
}

const DIAL_TIMEOUT_MS = 10_000;
const LINGER_MS = 1_000;

/** Replays nothing itself: what was read must have been put back into `stream`. Owns the stream; never throws. */
export async function serveFallback(
  stream: Duplex,
  { dest, xver }: Fallback,
  { source, local }: ConnectionEnds,
  dialer: Dialer,
): Promise<void> {
  try {
    const signal = AbortSignal.timeout(DIAL_TIMEOUT_MS);
    // With the visitor's own end, so that a fallback to the listener itself comes to its end.
    const asked = { network: "tcp", type: "Inner", user: null, destination: dest } as const;
    const metadata = describe({ name: "", ruleList: null, target: null }, { source, local }, asked);
    const remote = await dialer.connect(dest, { signal, metadata });
    remote.on("error", () => abortStream(stream));
    stream.on("error", () => abortStream(remote));
    if (stream.destroyed) return void remote.destroy();
    if (xver > 0) remote.write(proxyHeader(xver, source, local));
    join(stream, remote);
    join(remote, stream);
  } catch {
    endQuietly(stream); // no web server there: nothing that could be said to the visitor
  }
}

/** What the visitor still says is read for a moment: left unread in the socket it would make a reset of the end. */
function endQuietly(stream: Duplex): void {
  stream.on("error", () => {}).resume();
  stream.end();
  const late = setTimeout(() => void stream.destroy(), LINGER_MS).unref();
  stream.once("close", () => clearTimeout(late));
}

function join(from: Duplex, to: Duplex): void {
  from.pipe(to);
  from.on("close", () => {
    if (!from.readableEnded) to.destroy();
  });
}
