/**
 * No share link takes more than linear time, whichever part of it is long: every scheme of the registry, read, checked as a
 * node, and written again. The time is the thread's own, so a busy machine changes nothing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PROTOCOLS } from "#protocols/index.ts";
import { parseLink, renderLink } from "#protocols/share-links/index.ts";

/** Below the longest line that is read as a link. */
const LENGTH = 30_000;
/** Linear is a few; quadratic thousands. */
const MOST_MS = 100;

const UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
const KEYS = [
  ..."security sni alpn fp pbk sid spx pqv type host path serviceName mode extra headerType flow encryption ech".split(
    " ",
  ),
  ..."insecure allow_insecure obfs obfs-password mport pinSHA256 up down congestion_control udp_relay_mode".split(
    " ",
  ),
  ..."plugin group remarks protoparam obfsparam ed eh x".split(" "),
];
const PUMPS = [
  "a",
  "=",
  "%20",
  "%25",
  ",",
  "1-2,",
  "-",
  ":",
  ".",
  "a.",
  "1:",
  "{",
  '{"a":',
  "[",
  "&",
  ";",
  "a=b;",
  "/",
  "@",
  "#",
  "?",
  " ",
  "\t",
  "+",
  "é",
];

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Links with one long part, and two forms that are base64 as a whole. */
function* linksOf(scheme: string, long: string): Iterable<string> {
  const at = "example.com:443";
  for (const user of [`${UUID}:word`, base64("aes-128-gcm:word")]) {
    yield `${scheme}://${user}@${at}?security=tls#${long}`;
    yield `${scheme}://${user}@${long}:443#n`;
    yield `${scheme}://${user}@example.com:${long}#n`;
    yield `${scheme}://${user}@${at}/${long}#n`;
    yield `${scheme}://${user}@${at}?${long}#n`;
  }
  yield `${scheme}://${long}@${at}#n`;
  yield `${scheme}://${long}`;
  for (const key of KEYS) yield `${scheme}://${UUID}:word@${at}?security=tls&type=ws&${key}=${long}#n`;
  for (const key of ["ps", "add", "port", "host", "path", "sni", "x"])
    yield `${scheme}://${base64(JSON.stringify({ v: "2", add: "a.com", port: "443", id: UUID, net: "ws", [key]: long }))}`;
  yield `${scheme}://${base64(`${UUID}:${long}@${at}`)}#n`;
}

/** What a provider makes of a line; refused links end early. */
function take(link: string): void {
  try {
    const node = parseLink(link);
    PROTOCOLS.find(({ type }) => type === node["type"])?.outbound?.schema.safeParse(node);
    renderLink(node);
  } catch (error) {
    assert.equal(error instanceof Error && error.name, "ConfigError", String(error));
  }
}

function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

test("no part of a share link takes more than linear time", () => {
  const schemes = PROTOCOLS.flatMap(({ links }) => links?.schemes ?? []);
  assert.ok(schemes.includes("hysteria2") && schemes.includes("tuic") && schemes.length > 8, String(schemes));
  const faults: string[] = [];
  for (const scheme of [...schemes, "ssr"])
    for (const pump of PUMPS)
      for (const link of linksOf(scheme, pump.repeat(LENGTH / pump.length))) {
        if (cpuMs(() => take(link)) < MOST_MS) continue;
        const again = cpuMs(() => take(link)); // a collection may have fallen into the first
        if (again >= MOST_MS) faults.push(`${again} ms: ${link.slice(0, 100)}…${pump}`);
      }
  assert.deepEqual(faults, []);
});
