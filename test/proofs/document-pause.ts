/**
 * The longest round trips of a relayed ping-pong while weir takes each document and answers with what is in force, beside
 * those of some seconds without one; and its resident memory before it, with it, and when it has gone again.
 * `node scripts/run.mjs test/proofs/document-pause.ts [NAMES [RULES [WORD]]]`: names of the largest list (2,000,000), rules of
 * the largest configuration (300,000), and of which documents (all).
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { freePorts } from "../support/free-ports.ts";
import { configOf, documentsOf, geoSite, SMALL_PAGES, type Take } from "../support/pause-documents.ts";
import { PingPong, shownTrips } from "../support/ping-pong.ts";
import { residentMiB } from "../support/program-load.ts";
import { api, openSite, startWith } from "../support/provider-core.ts";

const NAMES = Number(process.argv[2] ?? 2_000_000);
const RULES = Number(process.argv[3] ?? 300_000);
const WORD = process.argv[4] ?? "";
const QUIET_MS = 3_000;
/** Memory is back by then. */
const BACK_MS = 8_000;
const CATEGORY = 300_000;

await using site = await openSite();
for (const [path, body] of Object.entries(SMALL_PAGES)) site.pages.set(path, { body });
site.pages.set("/geosite", { body: geoSite(CATEGORY + 1) });
const [port] = (await freePorts(1)) as [number];
const config = configOf(`http://127.0.0.1:${site.port}`, port);
await using core = await startWith(config, { "GeoSite.dat": geoSite(CATEGORY) });
using pingPong = new PingPong(port, core.pid);

const resident = (): number => Math.round(residentMiB(core.pid));
const still = await pingPong.during(() => delay(QUIET_MS));
console.log(`without a document: ${shownTrips(still)}; ${resident()} MiB`);
for (const document of documentsOf(config, { names: NAMES, rules: RULES })) {
  if (!document.name.includes(WORD)) continue;
  const before = resident();
  const from = performance.now();
  let status = 0;
  const trips = await pingPong.during(async () => (status = await take(document.take)));
  const seconds = ((performance.now() - from) / 1000).toFixed(1);
  console.log(`${document.name}: ${shownTrips(trips)}, answered ${status} after ${seconds} s`);
  const gets = document.take.kind === "file" ? (document.take.get ?? []) : [];
  for (const path of gets)
    console.log(`  GET ${path}: ${shownTrips(await pingPong.during(() => got(path)))}`);
  console.log(`  behind it: ${shownTrips(await pingPong.during(() => delay(QUIET_MS)))}`);
  const during = resident();
  const gone = await pingPong.during(async () => {
    await takeBack(document.take);
    await delay(BACK_MS);
  });
  console.log(`  taken back: ${shownTrips(gone)}\n  ${before} -> ${during} -> ${resident()} MiB`);
}

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
  } else if (document.kind === "payload" || (document.kind === "file" && !document.body.includes("GEOSITE")))
    await putFile(config);
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
