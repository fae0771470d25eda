/** Who may import whom, with the reason a row. Across folders by `#folder/file.ts`, inside one by `./file.ts`. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ANYTHING = null;

/** The longest folder that a file is in has its row; a row for `net` allows all of `net/…`. */
const MAY_IMPORT: Readonly<Record<string, readonly string[] | null>> = {
  lib: [], // no domain and no I/O: moves out one day without a change
  core: ["lib"], // the types of the domain
  platform: ["core", "lib"], // the only folder that knows the operating system
  net: ["core", "lib", "platform"], // sockets and addresses
  transport: ["core", "lib", "net", "platform"], // Duplex in, Duplex out: does not know who speaks through it; platform for the runtime's libssl
  dns: ["core", "lib", "net", "transport"], // dials through what it is given; transport for QUIC and HTTP/3
  router: ["core", "lib", "net", "platform", "router/tables"], // decides; platform only for the process lookup it is built with
  "router/tables": ["core", "lib", "net"], // what every thread has of the rules: data, and matchers made of it
  groups: ["core", "lib"], // an outbound that picks another, nothing more
  geodata: ["core", "lib", "net", "router/tables"], // databases beside the configuration; their users are not its business
  providers: ["core", "lib", "net", "router/tables"], // fetches and verifies; what the contents mean is injected
  protocols: ["core", "lib", "net", "transport", "platform"], // each builds on layers, never on another part of the program
  // What happens to traffic once it is accepted.
  dataplane: [
    "core",
    "lib",
    "net",
    "platform",
    "dataplane/event-loop",
    "dataplane/udp",
    "dataplane/workers/main",
    "router/tables", // what workers decide by
  ], // one line of it chooses the backend
  "dataplane/event-loop": ["core", "dataplane"],
  "dataplane/udp": ["core", "lib", "net", "dataplane"],
  // The border of the workers: the two sides share memory and the names in `shared`, and never each other.
  "dataplane/workers/shared": ["core", "lib", "net", "platform", "router/tables"],
  "dataplane/workers/wire": [
    "core",
    "lib",
    "net",
    "platform",
    "protocols",
    "transport", // goes on with what TLS 1.3 has begun
    "dataplane/workers/shared",
  ],
  "dataplane/workers/worker": [
    "core",
    "lib",
    "net",
    "platform",
    "protocols",
    "router/tables", // decides by them
    "transport", // has the connections of QUIC
    "dataplane/workers/shared",
    "dataplane/workers/wire",
  ],
  "dataplane/workers/main": ["core", "lib", "net", "platform", "dataplane", "dataplane/workers/shared"],
  store: ["core", "lib", "platform"], // one file for users and governance; platform starts its thread
  pages: ["lib"], // pages that the program writes itself, in the languages of those who read them
  governance: ["core", "lib", "pages", "store", "net"], // knows sessions and decisions, not how they are moved
  users: ["core", "lib", "store"],
  backup: ["core", "lib", "store"], // the form of a backup; what goes into it is gathered by app
  journal: ["core", "lib", "store"], // tokens, the audit log, events: in a file of their own
  fleet: ["core", "lib", "store", "users", "."], // "." is the version; users of many nodes in one database; loaded where it is configured
  "kernel-direct": ["core", "lib", "net", "platform"],
  tun: ["core", "lib", "net", "platform"], // packets in, sessions out; routes and rules are made by capture
  capture: ["core", "lib", "net", "platform"], // routes, rules and nftables around a TUN
  acme: ["core", "lib", "net", "providers", "transport"], // orders certificates and keeps them as files; providers replaces files, transport makes the certificate that stands in
  update: ["core", "lib", "net", "archive", "providers", "."], // another version of the program: fetched, checked, put in place; "." is the version
  archive: ["core", "lib"], // bytes to files; where the bytes come from is none of its business
  config: ["core", "lib", "net"], // text to value; the registries are given to it
  api: ["core", "lib", "pages"], // reads views and gives commands through interfaces of core
  migration: ["core", "lib", "users"], // what other programs keep of listeners and users, as ours
  documents: ["core", "lib", "platform", "config", "protocols", "providers"], // reads large files in a thread of its own
  // These join the parts, each on top of the one before.
  host: [
    "acme", // what listeners show to an authority
    "core",
    "lib",
    "net",
    "platform",
    "config",
    "dataplane",
    "dataplane/udp",
    "fleet", // loaded where it is configured
    "governance",
    "journal",
    "kernel-direct",
    "protocols",
    "store",
    "transport",
    "users",
    "geodata",
    "providers",
    "documents",
  ], // what outlives a reload
  runtime: [
    "core",
    "lib",
    "net",
    "platform",
    "api",
    "capture",
    "config",
    "dataplane",
    "dataplane/udp",
    "dns",
    "geodata",
    "groups",
    "governance",
    "host",
    "journal",
    "kernel-direct",
    "protocols",
    "providers",
    "router",
    "router/tables",
    "store",
    "tun",
    "transport",
    "users",
    "documents",
  ], // builds a generation from a Config
  upgrade: [
    ".", // the version
    "core",
    "lib",
    "net",
    "platform",
    "app",
    "config",
    "governance",
    "host",
    "journal",
    "store",
    "tun", // how devices are called on the way
    "users",
  ], // everything of a running program goes to another process; the app does not know of it
  app: ANYTHING,
  cli: ANYTHING,
  ".": ANYTHING, // main
};

const src = join(dirname(dirname(fileURLToPath(import.meta.url))), "src");
const IMPORT = /(?:from|import)\s*\(?\s*["']([^"']+)["']/g;

test("imports follow the table", () => {
  const faults: string[] = [];
  for (const file of globSync("**/*.ts", { cwd: src }).sort()) {
    const folder = folderOf(file);
    if (file.endsWith(".test.ts")) continue;
    const allowed = MAY_IMPORT[folder];
    if (allowed === undefined) faults.push(`${file}: the folder ${folder} is not in the table`);
    for (const [, wanted] of readFileSync(join(src, file), "utf8").matchAll(IMPORT)) {
      const target = wanted as string;
      if (target.startsWith("../")) faults.push(`${file}: ${target} climbs; write #${folder}/…`);
      if (!target.startsWith("#") || allowed === null || allowed === undefined) continue;
      const other = folderOf(target.slice(1));
      if (other !== folder && !allowed.includes(other))
        faults.push(`${file}: ${folder} may not import ${other}`);
    }
  }
  assert.deepEqual(faults, []);
});

/** The row that a file belongs to. */
function folderOf(file: string): string {
  const rows = Object.keys(MAY_IMPORT).filter((row) => file.startsWith(`${row}/`));
  return rows.reduce((longest, row) => (row.length > longest.length ? row : longest), ".");
}

test("a protocol is known in its folder and in one line of the registry", () => {
  for (const name of ["vless", "anytls"]) {
    const known = globSync("**/*.{ts,mjs}", { cwd: src }).filter(
      (file) =>
        !file.endsWith(".test.ts") &&
        !file.startsWith(`protocols/${name}/`) &&
        readFileSync(join(src, file), "utf8").toLowerCase().includes(name),
    );
    assert.deepEqual(
      known,
      ["protocols/begin-wire.ts", "protocols/index.ts"],
      `${name}: what others need of it is a member of Protocol, and what threads need a line of begin-wire`,
    );
  }
});

test("no files import each other in a circle, types included", () => {
  const imports = new Map<string, string[]>();
  for (const file of globSync("**/*.ts", { cwd: src }).filter((file) => !file.endsWith(".test.ts")))
    imports.set(file, importsOf(file));
  assert.deepEqual(circlesOf(imports), []);
  const known = new Map([
    ["a.ts", ["b.ts"]],
    ["b.ts", ["c.ts", "d.ts"]],
    ["c.ts", ["a.ts"]],
    ["d.ts", []],
  ]);
  assert.deepEqual(circlesOf(known), [["a.ts", "b.ts", "c.ts"]]);
});

/** Files of ours that a file names, as they are named below src/. */
function importsOf(file: string): string[] {
  const found = [...readFileSync(join(src, file), "utf8").matchAll(IMPORT)].map(([, wanted = ""]) => wanted);
  return found
    .filter((wanted) => wanted.startsWith("#") || wanted.startsWith("."))
    .map((wanted) => (wanted.startsWith("#") ? wanted.slice(1) : join(dirname(file), wanted)));
}

/** The strongly connected components of more than one file (Tarjan). */
function circlesOf(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const numbers = new Map<string, number>();
  const path: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string): number => {
    const number = numbers.size;
    numbers.set(file, number);
    path.push(file);
    let least = number;
    for (const next of imports.get(file) ?? [])
      if (!numbers.has(next)) least = Math.min(least, visit(next));
      else if (path.includes(next)) least = Math.min(least, numbers.get(next) ?? least);
    if (least !== number) return least;
    const circle = path.splice(path.indexOf(file));
    if (circle.length > 1) circles.push(circle.sort());
    return least;
  };
  for (const file of imports.keys()) if (!numbers.has(file)) visit(file);
  return circles;
}

test("every abort gives a reason: without one an exception keeps the caller's frames in memory", () => {
  const faults = globSync("**/*.ts", { cwd: src }).filter(
    (file) => !file.endsWith(".test.ts") && readFileSync(join(src, file), "utf8").includes(".abort()"),
  );
  assert.deepEqual(faults, []);
});

test("values of node:http come from lib/node-http.ts, the Controller is loaded by what opens it", () => {
  const faults: string[] = [];
  for (const file of globSync("**/*.ts", { cwd: src }).filter((name) => !name.endsWith(".test.ts"))) {
    const text = readFileSync(join(src, file), "utf8");
    for (const [statement] of text.matchAll(/^(?:import|export) (?!type )[^;]*?;/gm)) {
      if (/from "node:https?"/.test(statement)) faults.push(`${file}: ${statement}`);
      if (/"#api\//.test(statement) && !file.startsWith("api/") && !/#api\/hosts\.ts/.test(statement))
        faults.push(`${file}: ${statement}`);
    }
  }
  assert.deepEqual(faults, [], "each start would pay for it: docs/adr/0002");
});

test("functions of C are asked for in platform/ffi.ts, which knows what the end of a thread then needs", () => {
  const faults = globSync("**/*.ts", { cwd: src }).filter((file) =>
    readFileSync(join(src, file), "utf8").includes('getBuiltinModule("node:ffi")'),
  );
  assert.deepEqual(faults, [join("platform", "ffi.ts")]);
});
