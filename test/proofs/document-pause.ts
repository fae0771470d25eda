/**
 * The longest round trips of a relayed ping-pong while weir takes each document, beside those of some seconds without one,
 * and its resident memory some seconds after it, beside that before.
 * `node scripts/run.mjs test/proofs/document-pause.ts [NAMES [RULES [WORD]]]`: names of the largest list (2,000,000), rules of
 * the largest configuration (300,000), and of which documents (all).
 */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { freePorts } from "../support/free-ports.ts";
import { api, openSite, startWith } from "../support/provider-core.ts";

const NAMES = Number(process.argv[2] ?? 2_000_000);
const RULES = Number(process.argv[3] ?? 300_000);
const WORD = process.argv[4] ?? "";
const QUIET_MS = 3_000;

const lines = (count: number, line: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => line(at)).join("");
const bomb = lines(
  10,
  (at) =>
    `x${at}: &x${at} [${Array<string>(10)
      .fill(at === 0 ? "a" : `*x${at - 1}`)
      .join(", ")}]\n`,
);
const LINK = "vless://b831381d-6324-4d53-ad4f-8cda48b30811@example.com:443#same\n";
type Kind = "rules" | "yaml" | "proxies" | "payload" | "file";
type Document = readonly [name: string, kind: Kind, body: string, packed?: boolean];

const CONFIG = `
rule-providers:
  rules: { type: http, behavior: domain, format: text, url: 'BASE/rules', path: list.txt, interval: 0 }
  yaml: { type: http, behavior: domain, format: yaml, url: 'BASE/yaml', path: list.yaml, interval: 0 }
proxy-providers: { proxies: { type: http, url: 'BASE/proxies', path: nodes.yaml, interval: 0 } }
proxy-groups: [{ name: G, type: select, proxies: [DIRECT], use: [proxies] }]
listeners: [{ name: in, type: http, listen: 127.0.0.1, port: PORT }]
relay: portable
rules: ["RULE-SET,rules,G", "RULE-SET,yaml,G", "MATCH,DIRECT"]
`;
const names = (before: string): string =>
  lines(NAMES, (at) => `${before}+.host${at}.example${at % 97}.com\n`);
const rule = (at: number): string =>
  at % 3 === 0
    ? `  - DOMAIN-SUFFIX,host${at}.example${at % 97}.com,DIRECT\n`
    : at % 1000 < 700
      ? `  - DOMAIN,host${at}.example${at % 97}.com,G\n`
      : `  - IP-CIDR,11.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}/32,DIRECT,no-resolve\n`;

function documents(config: string): readonly Document[] {
  const rules = (body: string): string =>
    `${config.replace(/^rules:.*$/m, "rules:")}${body}  - MATCH,DIRECT\n`;
  return [
    ["5 MB of [", "proxies", `proxies: ${"[".repeat(5_000_000)}`],
    ["5 MB of {a: 1},", "proxies", `proxies: [${"{a: 1},".repeat(700_000)}]`],
    ["300,000 keys", "proxies", lines(300_000, (at) => `k${at}: 1\n`)],
    ["alias bomb", "proxies", `${bomb}proxies: *x9\n${"#".repeat(20_000)}`],
    ["16,000 links", "proxies", LINK.repeat(16_000)],
    ["16,000 links of as many names", "proxies", lines(16_000, (at) => LINK.replace("same", `node ${at}`))],
    ["8 MB of blank lines", "proxies", "\n".repeat(8_000_000)],
    ["gzip bomb", "proxies", "a".repeat(256 * 1024 * 1024), true],
    ["= 200,000 times", "proxies", "=".repeat(200_000)],
    ["a line of blanks", "rules", `a.com${" ".repeat(200_000)}x\n`],
    [`${NAMES} names`, "rules", names("")],
    [`${NAMES} names in YAML`, "yaml", `payload:\n${names("  - ")}`],
    ["1 MB of [ by PUT", "payload", `proxies: ${"[".repeat(1_000_000)}`],
    ["1 MB of {a: 1}, by PUT", "payload", `proxies: [${"{a: 1},".repeat(148_000)}]`],
    ["5 MB of [ by PUT of a path", "file", `proxies: ${"[".repeat(5_000_000)}`],
    ["5 MB of {a: 1}, by PUT of a path", "file", `proxies: [${"{a: 1},".repeat(700_000)}]`],
    ["a rule of blanks", "file", rules(`  - DOMAIN,a.com${" ".repeat(200_000)}x,DIRECT\n`)],
    ["the first configuration", "file", config],
    [`${RULES} rules`, "file", rules(lines(RULES, rule))],
    [`${RULES} rules again`, "file", rules(lines(RULES, rule))],
    ["the first configuration again", "file", config],
  ];
}

await using site = await openSite();
site.pages
  .set("/rules", { body: "a.com\n" })
  .set("/yaml", { body: "payload: [a.com]\n" })
  .set("/proxies", { body: "proxies: [{ name: n, type: direct }]\n" });
const [port] = (await freePorts(1)) as [number];
const config = CONFIG.replaceAll("BASE", `http://127.0.0.1:${site.port}`).replace("PORT", String(port));
await using core = await startWith(config);
const echo = createServer(
  (socket) =>
    void socket
      .setNoDelay()
      .pipe(socket)
      .on("error", () => {}),
).listen(0, "127.0.0.1");
await once(echo, "listening");
const client = connect({ host: "127.0.0.1", port }).setNoDelay();
client.write(`CONNECT 127.0.0.1:${(echo.address() as AddressInfo).port} HTTP/1.1\r\nHost: x\r\n\r\n`);
await once(client, "data");

const still = await roundTrips(client, quiet(QUIET_MS));
console.log(`without a document: ${still}; ${residentMiB()} MiB`);
for (const [name, kind, body, packed = false] of documents(config)) {
  if (!name.includes(WORD)) continue;
  const before = residentMiB();
  const from = performance.now();
  let status = 0;
  const taken = take(kind, body, packed).then((answer) => (status = answer.status));
  const trips = await roundTrips(client, taken);
  const seconds = ((performance.now() - from) / 1000).toFixed(1);
  const after = await roundTrips(client, quiet(QUIET_MS));
  console.log(`${name}: ${trips}, answered ${status} after ${seconds} s`);
  console.log(`  the ${QUIET_MS / 1000} s behind: ${after}; ${before} -> ${residentMiB()} MiB`);
}
client.destroy();
echo.close();

function take(kind: Kind, body: string, packed: boolean): Promise<Response> {
  if (kind === "payload") return put("/configs", { payload: body });
  if (kind === "file") {
    const path = join(core.home, "next.yaml");
    writeFileSync(path, body);
    return put("/configs", { path });
  }
  const headers = packed ? { "content-encoding": "gzip" } : {};
  site.pages.set(`/${kind}`, { body: packed ? gzipSync(body) : body, headers });
  return put(`/providers/${kind === "yaml" ? "rules" : kind}/${kind}`, {});
}

function put(path: string, body: object): Promise<Response> {
  return api(core, path, { method: "PUT", body: JSON.stringify(body) });
}

function residentMiB(): number {
  const [, kiB] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${core.pid}/status`, "utf8")) ?? [];
  return Math.round(Number(kiB) / 1024);
}

async function quiet(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** The three longest, and the middle of all. */
async function roundTrips(socket: Socket, work: Promise<unknown>): Promise<string> {
  let isOver = false;
  void work.finally(() => (isOver = true));
  const trips: number[] = [];
  while (!isOver) {
    const from = performance.now();
    socket.write("ping");
    await once(socket, "data");
    trips.push(performance.now() - from);
  }
  trips.sort((a, b) => b - a);
  const longest = trips.slice(0, 3).map(Math.round).join(", ");
  return `longest ${longest} ms of ${trips.length}, median ${(trips[trips.length >> 1] ?? 0).toFixed(2)} ms`;
}
