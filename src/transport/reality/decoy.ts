/** What a browser would do: one page of the real site, behind which the connection ends. */
import { randomInt } from "node:crypto";
import { connect } from "node:http2";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

const LEAST_MS = 1000;
const MOST_MS = 5000;

const HEADERS = {
  "user-agent":
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/133.0.0.0 Safari/537.36",
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
  "accept-encoding": "gzip, deflate, br",
  "accept-language": "en-US,en;q=0.9",
} as const;

export interface Page {
  readonly host: string;
  /** With its leading slash. */
  readonly path: string;
  /** What both sides agreed on. */
  readonly alpn: string | null;
}

/** Never throws; takes 1 to 5 s, less where `signal` ends it. Destroys the stream. */
export async function visitAsBrowser(stream: Duplex, page: Page, signal: AbortSignal): Promise<void> {
  stream.on("error", () => {});
  try {
    if (page.alpn === "h2") askByHttp2(stream, page);
    else askByHttp1(stream, page);
    await delay(randomInt(LEAST_MS, MOST_MS), undefined, { signal });
  } catch {
    // The site may answer as it likes, and the caller may be in a hurry.
  } finally {
    stream.destroy();
  }
}

function askByHttp2(stream: Duplex, { host, path }: Page): void {
  const session = connect(`https://${host}`, { createConnection: () => stream });
  session.on("error", () => {});
  const request = session.request({ ":path": path, ...HEADERS });
  request.on("error", () => {}).resume();
}

function askByHttp1(stream: Duplex, { host, path }: Page): void {
  const lines = Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
  stream.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\n${lines.join("")}\r\n`);
  stream.resume();
}
