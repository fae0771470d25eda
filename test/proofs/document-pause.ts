/**
 * The longest round trips of a relayed ping-pong while weir takes each document and answers with what is in force, beside
 * those of some seconds without one; and its resident memory before it, with it, and when it has gone again.
 * `node scripts/run.mjs test/proofs/document-pause.ts [NAMES [RULES [WORD]]]`: names of the largest list (2,000,000), rules of
 * the largest configuration (300,000), and of which documents (all).
 */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { freePorts } from "../support/free-ports.ts";
import { configOf, documentsOf, geoSite, SMALL_PAGES, type Take } from "../support/pause-documents.ts";
import { api, openSite, startWith } from "../support/provider-core.ts";

const NAMES = Number(process.argv[2] ?? 2_000_000);
const RULES = Number(process.argv[3] ?? 300_000);
const WORD = process.argv[4] ?? "";
const QUIET_MS = 3_000;
const CATEGORY = 300_000;

await using site = await openSite();
for (const [path, body] of Object.entries(SMALL_PAGES)) site.pages.set(path, { body });
site.pages.set("/geosite", { body: geoSite(CATEGORY + 1) });
const [port] = (await freePorts(1)) as [number];
const config = configOf(`http://127.0.0.1:${site.port}`, port);
await using core = await startWith(config, { "GeoSite.dat": geoSite(CATEGORY) });
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
for (const document of documentsOf(config, { names: NAMES, rules: RULES })) {
  if (!document.name.includes(WORD)) continue;
  const before = residentMiB();
  const from = performance.now();
  let status = 0;
  const taken = take(document.take).then((answer) => (status = answer));
  const trips = await roundTrips(client, taken);
  const seconds = ((performance.now() - from) / 1000).toFixed(1);
  console.log(`${document.name}: ${trips}, answered ${status} after ${seconds} s`);
  const gets = document.take.kind === "file" ? (document.take.get ?? []) : [];
  for (const path of gets) console.log(`  GET ${path}: ${await roundTrips(client, got(path))}`);
  const after = await roundTrips(client, quiet(QUIET_MS));
  const during = residentMiB();
  const gone = await roundTrips(
    client,
    takeBack(document.take).then(() => quiet(QUIET_MS)),
  );
  console.log(`  behind it: ${after}\n  taken back: ${gone}`);
  console.log(`  ${before} -> ${during} -> ${residentMiB()} MiB`);
}
client.destroy();
echo.close();

/** The status of the answer. */
async function take(document: Take): Promise<number> {
  switch (document.kind) {
    case "payload":
      return put("/configs", { payload: document.body });
    case "file":
      return putFile(document.body);
    case "geodata":
      return (await api(core, "/configs/geo", { method: "POST", body: "{}" })).status;
    case "packed":
      site.pages.set("/proxies", { body: gzipSync(document.body), headers: { "content-encoding": "gzip" } });
      return put("/providers/proxies/proxies", {});
    case "provider":
      site.pages.set(`/${document.name}`, { body: document.body });
      return put(`/providers/${document.of}/${document.name}`, {});
  }
}

/** What was in force before; an update of a database needs the configuration of the document before it and stays. */
async function takeBack(document: Take): Promise<void> {
  if (document.kind === "provider" || document.kind === "packed") {
    const [of, name] = document.kind === "packed" ? ["proxies", "proxies"] : [document.of, document.name];
    site.pages.set(`/${name}`, { body: SMALL_PAGES[`/${name}`] ?? "" });
    await put(`/providers/${of}/${name}`, {});
  } else if (document.kind === "file" && !document.body.includes("GEOSITE")) await putFile(config);
}

async function put(path: string, body: object): Promise<number> {
  return (await api(core, path, { method: "PUT", body: JSON.stringify(body) })).status;
}

function putFile(body: string): Promise<number> {
  const path = join(core.home, "next.yaml");
  writeFileSync(path, body);
  return put("/configs", { path });
}

async function got(path: string): Promise<void> {
  const answer = await api(core, path);
  for await (const _ of answer.body ?? []); // read as it comes: this process has a ping-pong to time
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
