/** The downloadable build runs by itself in an empty directory. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePorts } from "../support/free-ports.ts";
import { linkedFiles, namedFiles } from "../support/named-files.ts";
import { startCore } from "../support/start-core.ts";

const exec = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const platform = `${process.platform}-${process.arch}`;

const FLEET = `listeners: [{ name: edge, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [] }]
svc:
  secret: 0123456789abcdef0123456789abcdef
  managed-listeners: [edge]
  state: state.db
  fleet: { dsn: "postgres://u:p@127.0.0.1:1/x", node: a }
`;

test("the build starts in an empty directory and says its version everywhere", async () => {
  const out = mkdtempSync(join(tmpdir(), "weir-build-"));
  try {
    await exec(
      process.execPath,
      [join(root, "scripts/build.mjs"), "--platform", platform, "--no-archive", "--out", out],
      {
        env: { ...process.env, WEIR_BUILD: "test-build-7" },
      },
    );
    const folder = join(out, readdirSync(out)[0] as string);
    assert.equal(readFileSync(join(folder, "version.txt"), "utf8"), "test-build-7\n");
    for (const part of ["weir", "api", "relay-worker", "config-thread"])
      assert.ok(statSync(join(folder, "lib", `${part}.cjs.code`)).size > 0, `${part} is compiled`);
    const notices = readFileSync(join(folder, "THIRD-PARTY-NOTICES.txt"), "utf8");
    for (const name of ["fastify", "preact", "uplot", "Node.js"])
      assert.match(notices, new RegExp(`==== ${name} `));
    const pages = ["README.md", "SECURITY.md", ...globSync("docs/**/*.md", { cwd: folder })];
    for (const page of pages) {
      const text = readFileSync(join(folder, page), "utf8");
      const named = page.startsWith("docs/") ? linkedFiles(text) : namedFiles(text);
      for (const file of named)
        assert.ok(existsSync(join(folder, dirname(page), file)), `${page} names ${file}, which is not there`);
    }
    const program = join(folder, "weir");
    const empty = mkdtempSync(join(tmpdir(), "weir-empty-"));
    const env = { PATH: "/usr/bin:/bin", HOME: empty };
    const { stdout } = await exec(program, ["-v"], { cwd: empty, env });
    assert.equal(stdout.split(" ")[2], "test-build-7");

    // A part with a file of its own: the database's driver.
    writeFileSync(join(empty, "fleet.yaml"), FLEET);
    const check = exec(program, ["fleet", "check", "-d", empty, "-f", join(empty, "fleet.yaml")], { env });
    await assert.rejects(check, /127\.0\.0\.1:1: nothing listens there/);

    const [mixed, controller] = (await freePorts(2)) as [number, number];
    await using core = await startCore(
      `mixed-port: ${mixed}\nexternal-controller: 127.0.0.1:${controller}\ntraffic-control: { enabled: true, global: {} }\n`,
      { program },
    );
    const version = await (await fetch(`http://127.0.0.1:${controller}/version`)).json();
    assert.deepEqual(version, { meta: true, version: "test-build-7" });
    const status = await fetch(`http://127.0.0.1:${controller}/api/svc/traffic-control/status`);
    const { store_bytes } = (await status.json()) as { store_bytes: number };
    assert.ok(store_bytes > 0, "the thread of a store is in the build");
    const script = await fetch(`http://127.0.0.1:${controller}/ui/app.js`);
    assert.equal(script.status, 200, "the dashboard is in the build");
    await script.body?.cancel();
    assert.equal(await core.stop(), 0);
    rmSync(empty, { recursive: true });
  } finally {
    rmSync(out, { recursive: true });
  }
});
