/** The downloadable build runs by itself in an empty directory, and as a Debian package. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildInside, lastOf, stepsOf } from "../support/container-steps.ts";
import { installedProgram, startAs } from "../support/installed-program.ts";
import { openDebianSystem } from "../support/debian-system.ts";
import { freePorts } from "../support/free-ports.ts";
import { linkedFiles, namedFiles } from "../support/named-files.ts";
import { skipNetns } from "../support/netns.ts";
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

const out = mkdtempSync(join(tmpdir(), "weir-build-"));
const folder = join(out, `weir-test-build-7-${platform}`);

before(async () => {
  const args = [join(root, "scripts/build.mjs"), "--platform", platform, "--no-archive", "--out", out];
  await exec(process.execPath, args, { env: { ...process.env, WEIR_BUILD: "test-build-7" } });
});
after(() => rmSync(out, { recursive: true }));

test("the build starts in an empty directory and says its version everywhere", async () => {
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
});

const PACKAGE = join(out, "weir_0~test+build.7_amd64.deb");
const debian =
  platform === "linux-x64"
    ? skipNetns("package", "dpkg", "dpkg-deb", "unshare", "nsenter", "setpriv", "curl")
    : "the test names the package for amd64";

test("the package is installed, serves, is upgraded, removed and purged", { skip: debian }, async () => {
  await makeUpgrade();
  await using system = await openDebianSystem(out);
  const { sh } = system;
  const dpkg = (what: string) => sh(`dpkg --no-triggers ${what} 2>&1`);

  await dpkg(`-i /mnt/${basename(PACKAGE)}`);
  assert.equal(
    (await sh("stat -c '%a %U:%G' /etc/weir /etc/weir/config.yaml /var/lib/weir")).trim(),
    "750 root:weir\n640 root:weir\n750 weir:weir",
  );
  assert.match(await sh("getent passwd weir"), /:\/var\/lib\/weir:\/usr\/sbin\/nologin$/m);
  assert.match(await sh("weir -v"), /test-build-7/);
  assert.match(await sh("zcat /usr/share/man/man1/weir.1.gz"), /^\.TH WEIR 1 "" "weir test-build-7"/);
  await sh("bash -n /usr/share/bash-completion/completions/weir");
  await sh("test -e /etc/systemd/system/multi-user.target.wants/weir.service");
  assert.match(await sh("cat /usr/share/doc/weir/copyright"), /MIT[^]*==== fastify [^]*==== Node.js /);
  await dpkg("--verify weir").then((said) =>
    assert.doesNotMatch(said, /^..5/m, "what was installed has other contents"),
  );

  // What its owner does with it: edits the file, puts another beside it, has it serve and keep something.
  await sh(
    "echo 'external-controller: 127.0.0.1:9090' >>/etc/weir/config.yaml && echo mine >/etc/weir/notes",
  );
  const ask = "curl -sS -x http://127.0.0.1:7890 http://127.0.0.1:9090/version";
  {
    await using program = await installedProgram(system);
    assert.match(await sh(ask), /test-build-7/);
    assert.equal(await program.stop(), 0);
  }
  await sh("setpriv --reuid weir --regid weir --clear-groups sh -c 'echo kept >/var/lib/weir/kept'");
  const edited = await sh("cat /etc/weir/config.yaml");

  await dpkg("-i /mnt/upgrade.deb");
  assert.equal(await sh("cat /etc/weir/config.yaml"), edited);
  assert.equal(await sh("stat -c '%a %U:%G' /etc/weir/config.yaml"), "640 root:weir\n");
  assert.equal(await sh("cat /var/lib/weir/kept"), "kept\n");
  await sh("sh -e /var/lib/dpkg/info/weir.postinst configure 1"); // once more changes nothing
  {
    await using program = await installedProgram(system);
    assert.match(await sh(ask), /test-build-7/);
    assert.equal(await program.stop(), 0);
  }

  await dpkg("-r weir");
  assert.equal(await sh("cat /etc/weir/config.yaml /var/lib/weir/kept"), `${edited}kept\n`);
  await sh("! test -e /usr/bin/weir && ! test -e /usr/lib/weir && ! test -e /usr/share/doc/weir");
  await dpkg("-P weir");
  await sh("! getent passwd weir && ! getent group weir");
  assert.deepEqual([...(await system.changes())].sort(), ["./etc/weir/", "./etc/weir/notes"]);
});

test("the steps of the image lead to a program that serves and is found well", { skip: debian }, async () => {
  await using system = await openDebianSystem(folder);
  const { sh } = system;
  const steps = stepsOf(readFileSync(join(folder, "deploy/container/Containerfile"), "utf8"));
  await buildInside(system, steps);
  await sh("install -m 644 /mnt/deploy/container/single.yaml /etc/weir/config.yaml");
  const [user = "", group = ""] = lastOf(steps, "USER").split(":");
  const health = JSON.parse(lastOf(steps, "HEALTHCHECK").replace(/^.*? CMD /, "")) as string[];
  const check = () => sh(`setpriv --reuid ${user} --regid ${group} --clear-groups ${health.join(" ")}`);
  await assert.rejects(check());
  const command = ["ENTRYPOINT", "CMD"].flatMap((word) => JSON.parse(lastOf(steps, word)) as string[]);
  await using program = await startAs(system, user, group, command);
  await check();
  assert.equal(await program.stop(), 0);
  await assert.rejects(check());
});

/** The package once more with a higher version. */
async function makeUpgrade() {
  const tree = join(out, "upgrade");
  await exec("dpkg-deb", ["-R", PACKAGE, tree]);
  const control = join(tree, "DEBIAN/control");
  writeFileSync(control, readFileSync(control, "utf8").replace(/^Version: .*/m, "Version: 1.0"));
  await exec("dpkg-deb", ["--root-owner-group", "-Znone", "-b", tree, join(out, "upgrade.deb")]);
  rmSync(tree, { recursive: true });
}
