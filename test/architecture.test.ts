/** Who may import whom, with the reason a row. Across folders by `#folder/file.ts`, inside one by `./file.ts`. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ANYTHING = null;

const MAY_IMPORT: Readonly<Record<string, readonly string[] | null>> = {
  core: [], // the vocabulary: moves out one day without a change
  platform: ["core"], // the only folder that knows the operating system
  net: ["core", "platform"], // sockets and addresses
  transport: ["core", "net", "platform"], // Duplex in, Duplex out: does not know who speaks through it; platform for the runtime's libssl
  dns: ["core", "net"], // dials through what it is given
  router: ["core", "net", "platform"], // decides; platform only for the process lookup it is built with
  groups: ["core"], // an outbound that picks another, nothing more
  geodata: ["core", "net"], // databases beside the configuration; who wants them is not its business
  providers: ["core", "net"], // fetches and verifies; what the contents mean is injected
  relay: ["core", "net", "platform"], // moves bytes; the meter is an interface of core
  engine: ["core", "net", "platform", "protocols", "relay"], // a carrier for relay; its threads accept, too, and read plain handshakes by the pure parsers of protocols
  protocols: ["core", "net", "transport", "platform"], // each builds on layers, never on another part of the program
  store: ["core", "platform"], // one file for users and governance; platform starts its thread
  governance: ["core", "store", "net"], // knows sessions and decisions, not how they are moved
  users: ["core", "store"],
  "kernel-direct": ["core", "net", "platform"],
  tun: ["core", "net", "platform"], // packets in, sessions out; routes and rules are made by capture
  capture: ["core", "net", "platform"], // routes, rules and nftables around a TUN
  archive: ["core"], // bytes to files; where the bytes come from is none of its business
  config: ["core", "net"], // text to value; the registries are given to it
  api: ["core"], // reads views and gives commands through interfaces of core
  runtime: ANYTHING,
  control: ANYTHING, // joins the parts into the views and commands of core/control.ts
  cli: ANYTHING,
  ".": ANYTHING, // main, app, host
};

const src = join(dirname(dirname(fileURLToPath(import.meta.url))), "src");
const IMPORT = /(?:from|import)\s*\(?\s*["']([^"']+)["']/g;

test("imports follow the table", () => {
  const faults: string[] = [];
  for (const file of globSync("**/*.ts", { cwd: src }).sort()) {
    const folder = file.includes("/") ? (file.split("/")[0] as string) : ".";
    if (file.endsWith(".test.ts")) continue;
    const allowed = MAY_IMPORT[folder];
    if (allowed === undefined) faults.push(`${file}: the folder ${folder} is not in the table`);
    for (const [, wanted] of readFileSync(join(src, file), "utf8").matchAll(IMPORT)) {
      const target = wanted as string;
      if (target.startsWith("../")) faults.push(`${file}: ${target} climbs; write #${folder}/…`);
      if (!target.startsWith("#") || allowed === null || allowed === undefined) continue;
      const other = target.slice(1).split("/")[0] as string;
      if (other !== folder && !allowed.includes(other))
        faults.push(`${file}: ${folder} may not import ${other}`);
    }
  }
  assert.deepEqual(faults, []);
});

test("every abort gives a reason: without one an exception keeps the caller's frames in memory", () => {
  const faults = globSync("**/*.ts", { cwd: src }).filter(
    (file) => !file.endsWith(".test.ts") && readFileSync(join(src, file), "utf8").includes(".abort()"),
  );
  assert.deepEqual(faults, []);
});
