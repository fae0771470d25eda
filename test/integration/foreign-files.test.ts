/** What lies at a path that weir would write is refused and left as it is: bytes, inode, time, and nothing beside it. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";

const weir = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "bin", "weir");
const SECRET = "0123456789abcdef0123456789abcdef";
const KEY = `-----BEGIN PRIVATE KEY-----\n${"A".repeat(64)}\n-----END PRIVATE KEY-----\n`;

function database(path: string): void {
  using made = new DatabaseSync(path);
  made.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')");
}

/** By kind, how one comes to be at a path. */
const KINDS: Readonly<Record<string, (path: string) => void>> = {
  text: (path) => writeFileSync(path, "remember the milk\n", { mode: 0o600 }),
  key: (path) => writeFileSync(path, KEY, { mode: 0o600 }),
  noise: (path) => writeFileSync(path, Buffer.from([255, 216, 0, 16, 74, 70, 73, 70, 0, 1]), { mode: 0o600 }),
  database,
  folder(path) {
    mkdirSync(path);
    writeFileSync(join(path, "notes"), "mine");
  },
  link(path) {
    writeFileSync(`${path}-target`, "the target", { mode: 0o600 });
    symlinkSync(`${path}-target`, path);
  },
  device: (path) => execFileSync("mknod", [path, "c", "1", "3"]),
  fifo: (path) => execFileSync("mkfifo", [path]),
};
const CAN_MAKE_DEVICES = process.getuid?.() === 0;

/** Everything in a folder that a change could show in. */
function picture(folder: string): unknown {
  return readdirSync(folder)
    .sort()
    .map((name) => {
      const path = join(folder, name);
      const { ino, mode, size, mtimeNs } = lstatSync(path, { bigint: true });
      const facts = [name, ino, mode, size, mtimeNs].join();
      const stats = lstatSync(path);
      if (stats.isDirectory()) return [facts, picture(path)];
      if (stats.isSymbolicLink()) return [facts, readlinkSync(path)];
      return [facts, stats.isFile() ? readFileSync(path).toString("base64") : ""];
    });
}

/** Every key that names a path, as a document of its own. */
const KEYS: Readonly<Record<string, (path: string) => string>> = {
  "svc.store": (path) => `svc: {secret: "${SECRET}", store: ${path}}\n`,
  "traffic-control.store": (path) => `traffic-control: {enabled: true, store: ${path}}\n`,
  "proxy provider p": (path) =>
    `proxy-providers: {p: {type: http, url: "http://127.0.0.1:1/", path: ${path}, interval: 3600}}\n`,
  "rule provider r": (path) =>
    `rule-providers: {r: {type: http, url: "http://127.0.0.1:1/", path: ${path}, behavior: domain, format: text}}\n`,
  "external-ui": (path) => `external-ui: ${path}\n`,
};

/** What may be there for a key: a list of others is read and never written, a folder of others is served. */
const FITS: Readonly<Record<string, readonly string[]>> = {
  "proxy provider p": ["text", "noise"],
  "rule provider r": ["text", "noise"],
  "external-ui": ["folder"],
};

const kinds = Object.keys(KINDS).filter((kind) => kind !== "device" || CAN_MAKE_DEVICES);
const refused = (kind: string) => Object.keys(KEYS).filter((key) => FITS[key]?.includes(kind) !== true);

function withHome(work: (home: string) => void): void {
  const home = mkdtempSync(join(tmpdir(), "weir-foreign-"));
  try {
    work(home);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** All keys at once, each at its own path of this kind. */
function fill(home: string, kind: string): string {
  mkdirSync(join(home, kind));
  return Object.entries(KEYS)
    .map(([key, text], at) => {
      KINDS[kind]?.(join(home, kind, `f${at}`));
      return text(`${kind}/f${at}`).replace("\n", ` # ${key}\n`);
    })
    .join("");
}

for (const kind of kinds)
  test(`${kind}: refused at -t and at the start, by every key that would write there`, () =>
    withHome((home) => {
      writeFileSync(join(home, "config.yaml"), `mixed-port: 0\n${fill(home, kind)}`);
      const before = picture(home);
      for (const args of [["-t"], []]) {
        const { status, stdout } = spawnSync(weir, ["-d", home, ...args], {
          encoding: "utf8",
          timeout: 60_000,
          env: { ...process.env, SKIP_SAFE_PATH_CHECK: "" },
        });
        assert.equal(status, 1, stdout);
        for (const key of refused(kind))
          assert.match(stdout, new RegExp(`${key}: `), `${key} ${args.join()}`);
        assert.deepEqual(picture(home), before);
      }
    }));

test("refused by a reload, PUT /configs and PUT of policies, and what runs goes on", async () => {
  const [controller] = (await freePorts(1)) as [number];
  const head = `mixed-port: 0\nexternal-controller: 127.0.0.1:${controller}\nsecret: s\n`;
  await using core = await startCore(`${head}traffic-control: {enabled: true}\n`);
  const ask = async (method: string, path: string, body: object) => {
    const answer = await fetch(`http://127.0.0.1:${controller}${path}`, {
      method,
      headers: { authorization: "Bearer s" },
      body: JSON.stringify(body),
    });
    return { status: answer.status, text: await answer.text() };
  };
  for (const kind of kinds) {
    fill(core.home, kind);
    const before = picture(join(core.home, kind));
    for (const [at, [key, text]] of Object.entries(KEYS).entries()) {
      if (!refused(kind).includes(key)) continue;
      const bad = head + text(`${kind}/f${at}`);
      const answer = await ask("PUT", "/configs?force=true", { payload: bad });
      assert.equal(answer.status, 400, `${kind} ${key}: ${answer.text}`);
    }
    await core.reload(head + KEYS["svc.store"]?.(`${kind}/f0`), /reload failed[^]*svc\.store: /);
    const { revision } = (await (
      await fetch(`http://127.0.0.1:${controller}/api/svc/traffic-control/policies`, {
        headers: { authorization: "Bearer s" },
      })
    ).json()) as { revision: number };
    const policies = { revision, config: { enabled: true, store: `${kind}/f1` } };
    const put = await ask("PUT", "/api/svc/traffic-control/policies", policies);
    assert.equal(put.status, 400, `${kind}: ${put.text}`);
    assert.match(put.text, /traffic-control\.store/);
    assert.doesNotMatch(put.text, new RegExp(core.home), "no absolute path");
    assert.deepEqual(picture(join(core.home, kind)), before, kind);
  }
  for (const store of ["config.yaml", ".", "weir-cache.db", "controller-secret"])
    for (const key of ["svc.store", "traffic-control.store"]) {
      const answer = await ask("PUT", "/configs?force=true", { payload: head + KEYS[key]?.(store) });
      assert.equal(answer.status, 400, `${key} ${store}`);
    }
});

test("one path is not used for two things", () =>
  withHome((home) => {
    writeFileSync(join(home, "key.pem"), KEY, { mode: 0o600 });
    const check = (text: string) => {
      writeFileSync(join(home, "config.yaml"), `mixed-port: 0\n${text}`);
      const { status, stdout } = spawnSync(weir, ["-d", home, "-t"], { encoding: "utf8" });
      return { status, stdout };
    };
    const provider = (path: string) => KEYS["proxy provider p"]?.(path) as string;
    const cases: readonly (readonly [string, RegExp])[] = [
      [
        `${KEYS["svc.store"]?.("a.db")}${KEYS["traffic-control.store"]?.("a.db")}`,
        /a\.db is that of svc\.store/,
      ],
      [
        `${KEYS["svc.store"]?.("a.db")}${KEYS["traffic-control.store"]?.("a.db.bak")}`,
        /is that of svc\.store/,
      ],
      [KEYS["svc.store"]?.("cache.db") as string, /cache\.db is that of cache\.db/],
      [provider("config.yaml"), /config\.yaml is that of/],
      [provider("GeoSite.dat"), /successful/],
      [
        `tls: {certificate: key.pem, private-key: key.pem}\n${provider("key.pem")}`,
        /key\.pem is that of tls/,
      ],
      [`svc: {secret: "${SECRET}"}\n${provider("svc-state.db")}`, /svc-state\.db is that of svc\.store/],
      [`svc: {secret: "${SECRET}"}\nexternal-ui: .\n`, /external-ui: .*served to everybody/],
      [
        "external-controller: 127.0.0.1:9090\ntraffic-control: {enabled: true, portal: {listen: 127.0.0.1:9090}}\n",
        /portal\.listen: port 9090 is that of external-controller/,
      ],
    ];
    for (const [text, wanted] of cases) {
      const { status, stdout } = check(text);
      assert.match(stdout, wanted, text);
      assert.equal(status, String(wanted).includes("successful") ? 0 : 1);
    }
    assert.deepEqual(readdirSync(home).sort(), ["config.yaml", "key.pem"]);
  }));

test("a folder that others can write to is named by -t, the folders above it, too", () =>
  withHome((home) => {
    mkdirSync(join(home, "a", "b"), { recursive: true });
    writeFileSync(join(home, "config.yaml"), `mixed-port: 0\n${KEYS["svc.store"]?.("a/b/s.db")}`);
    for (const [folder, mode, wanted] of [
      ["a/b", 0o722, /svc\.store: .*a\/b: others can write to it/],
      ["a", 0o757, /svc\.store: .*\/a: everybody can write to it/],
      ["a", 0o1757, /svc\.store/],
    ] as const) {
      chmodSync(join(home, folder), mode);
      const { stdout } = spawnSync(weir, ["-d", home, "-t"], { encoding: "utf8" });
      if (mode === 0o1757)
        assert.doesNotMatch(stdout, wanted, "no other user replaces a file in a sticky folder");
      else assert.match(stdout, wanted);
      chmodSync(join(home, folder), 0o755);
    }
  }));

test("a list that weir has not written is read and stays; the download is kept beside it, and found by the next start", async () => {
  let served = "new.example\n";
  const server = createServer((_, response) => response.end(served));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const [controller] = (await freePorts(1)) as [number];
  const text = `mixed-port: 0
external-controller: 127.0.0.1:${controller}
rule-providers:
  theirs: {type: http, url: "http://127.0.0.1:${port}/a", path: lists/theirs, behavior: domain, format: text}
  ours: {type: http, url: "http://127.0.0.1:${port}/b", path: lists/ours, behavior: domain, format: text}
rules: ["RULE-SET,theirs,REJECT", "RULE-SET,ours,REJECT"]
`;
  const update = async (name: string) =>
    (await fetch(`http://127.0.0.1:${controller}/providers/rules/${name}`, { method: "PUT" })).status;
  try {
    const seed = (home: string) => {
      mkdirSync(join(home, "lists"));
      writeFileSync(join(home, "lists", "theirs"), "old.example\n");
    };
    await using core = await startCore(text, { seed });
    const theirs = join(core.home, "lists", "theirs");
    const before = lstatSync(theirs).ino;
    for (const [round, body] of ["one.example\n", "two.example\n", "old.example\n"].entries()) {
      served = body;
      for (const name of ["theirs", "ours"]) assert.equal(await update(name), 204);
      assert.equal(readFileSync(join(core.home, "lists", "ours"), "utf8"), body);
      assert.equal(readFileSync(theirs, "utf8"), "old.example\n", `round ${round}`);
      assert.equal(lstatSync(theirs).ino, before);
      assert.equal(readFileSync(`${theirs}.weir`, "utf8"), body);
    }
    assert.deepEqual(readdirSync(dirname(theirs)).sort(), ["ours", "theirs", "theirs.weir"]);
    rmSync(join(core.home, "lists", "ours"));
    symlinkSync(theirs, join(core.home, "lists", "ours"));
    assert.equal(await update("ours"), 503, "a link is not replaced");
    assert.equal(readlinkSync(join(core.home, "lists", "ours")), theirs);
  } finally {
    server.close();
  }
});

test("databases that are none are not replaced by a download", async () => {
  const [controller] = (await freePorts(1)) as [number];
  for (const kind of ["text", "key", "database", "link", "fifo"]) {
    const text = `mixed-port: 0\nexternal-controller: 127.0.0.1:${controller}\ngeox-url: {geosite: "http://127.0.0.1:1/"}\nrules: ["GEOSITE,cn,REJECT"]\n`;
    let before: unknown;
    await using core = await startCore(text, {
      seed(home) {
        KINDS[kind]?.(join(home, "GeoSite.dat"));
        before = lstatSync(join(home, "GeoSite.dat")).ino;
      },
    });
    const answer = await fetch(`http://127.0.0.1:${controller}/configs/geo`, { method: "POST" });
    assert.match(await answer.text(), /it is not replaced/, kind);
    assert.equal(lstatSync(join(core.home, "GeoSite.dat")).ino, before);
  }
});
