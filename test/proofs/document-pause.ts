/**
 * The longest round trip of a relayed ping-pong while a provider takes each document, beside that of the same time without one.
 * `node scripts/run.mjs test/proofs/document-pause.ts [NAMES]` (of the largest list; 2,000,000 where nothing is said).
 */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { api, openSite, startWith } from "../support/provider-core.ts";

const NAMES = Number(process.argv[2] ?? 2_000_000);
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
const DOCUMENTS: readonly (readonly [
  name: string,
  kind: "rules" | "proxies",
  body: string,
  packed?: boolean,
])[] = [
  ["5 MB of [", "proxies", `proxies: ${"[".repeat(5_000_000)}`],
  ["5 MB of {a: 1},", "proxies", `proxies: [${"{a: 1},".repeat(700_000)}]`],
  ["300,000 keys", "proxies", lines(300_000, (at) => `k${at}: 1\n`)],
  ["alias bomb", "proxies", `${bomb}proxies: *x9\n${"#".repeat(20_000)}`],
  ["16,000 links", "proxies", LINK.repeat(16_000)],
  ["8 MB of blank lines", "proxies", "\n".repeat(8_000_000)],
  ["gzip bomb", "proxies", "a".repeat(256 * 1024 * 1024), true],
  ["a line of blanks", "rules", `a.com${" ".repeat(200_000)}x\n`],
  [`${NAMES} names`, "rules", lines(NAMES, (at) => `+.host${at}.example${at % 97}.com\n`)],
];

await using site = await openSite();
site.pages
  .set("/rules", { body: "a.com\n" })
  .set("/proxies", { body: "proxies: [{ name: n, type: direct }]\n" });
const base = `http://127.0.0.1:${site.port}`;
await using core = await startWith(`
rule-providers: { list: { type: http, behavior: domain, format: text, url: '${base}/rules', path: list.txt, interval: 0 } }
proxy-providers: { list: { type: http, url: '${base}/proxies', path: nodes.yaml, interval: 0 } }
proxy-groups: [{ name: G, type: select, proxies: [DIRECT], use: [list] }]
listeners: [{ name: in, type: http, listen: 127.0.0.1, port: 0 }]
relay: portable
rules: ["RULE-SET,list,G", "MATCH,DIRECT"]
`);
const echo = createServer(
  (socket) =>
    void socket
      .setNoDelay()
      .pipe(socket)
      .on("error", () => {}),
).listen(0, "127.0.0.1");
await once(echo, "listening");
const client = connect({ host: "127.0.0.1", port: await core.port("in") }).setNoDelay();
client.write(`CONNECT 127.0.0.1:${(echo.address() as AddressInfo).port} HTTP/1.1\r\nHost: x\r\n\r\n`);
await once(client, "data");

console.log(
  `longest round trip in ${QUIET_MS} ms without a document: ${await longestWhile(client, quiet())} ms`,
);
for (const [name, kind, body, packed = false] of DOCUMENTS) {
  const headers = packed ? { "content-encoding": "gzip" } : {};
  site.pages.set(`/${kind}`, { body: packed ? gzipSync(body) : body, headers });
  const from = performance.now();
  let status = 0;
  const taken = api(core, `/providers/${kind}/list`, { method: "PUT" }).then(
    (answer) => (status = answer.status),
  );
  const longest = await longestWhile(client, taken);
  console.log(`${name}: ${longest} ms, answered ${status} after ${Math.round(performance.now() - from)} ms`);
}
client.destroy();
echo.close();

async function quiet(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
}

/** Milliseconds. */
async function longestWhile(socket: Socket, work: Promise<unknown>): Promise<number> {
  let isOver = false;
  void work.finally(() => (isOver = true));
  let longest = 0;
  while (!isOver) {
    const from = performance.now();
    socket.write("ping");
    await once(socket, "data");
    longest = Math.max(longest, performance.now() - from);
  }
  return Math.round(longest);
}
