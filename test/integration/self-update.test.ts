/** A build that was installed by deploy/install.sh updates itself, and the process that runs, from a release that openssl has signed. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  cpSync,
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { noBrowser, openBrowser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { TLS_KEYS } from "../support/managed-core.ts";
import { PLATFORM } from "../support/release.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { openSteadyTransfer, SteadyOrigin } from "../support/steady-transfers.ts";
import { until } from "../support/until.ts";
import { processesIn } from "../support/upgrade-world.ts";

const exec = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const skip = process.platform === "linux" ? false : "SKIP self-update: needs Linux";
const OLD = "1.0.0-20260101-aaaa";
const NEW = "1.0.1-20260201-bbbb";
const SECRET = "a secret of the controller";
const SVC_SECRET = "0123456789abcdef0123456789abcdef";

const top = mkdtempSync(join(tmpdir(), "weir-self-"));
const dist = join(top, "dist");
let server: Server;

before(async () => {
  if (skip !== false) return;
  const args = [join(root, "scripts/build.mjs"), "--platform", PLATFORM, "--no-deb", "--out", dist];
  await exec(process.execPath, args, { env: { ...process.env, WEIR_BUILD: NEW } });
  // As docs/update.md has it.
  await exec("openssl", ["genpkey", "-algorithm", "ed25519", "-out", join(top, "release.key")]);
  await exec("openssl", [
    "pkey",
    "-in",
    join(top, "release.key"),
    "-pubout",
    "-out",
    join(top, "release.pub"),
  ]);
  const manifest = join(dist, "manifest.json");
  await exec("openssl", [
    "pkeyutl",
    "-sign",
    "-rawin",
    "-inkey",
    join(top, "release.key"),
    "-in",
    manifest,
    "-out",
    `${manifest}.sig`,
  ]);
  await makeOld(join(dist, `weir-${NEW}-${PLATFORM}`));
  server = createServer(({ url = "" }, response) => {
    const file = createReadStream(join(dist, basename(url)));
    file.on("error", () => response.writeHead(404).end()).pipe(response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
after(() => {
  server?.close();
  rmSync(top, { recursive: true });
});

/** The archive of the same build under an older name: a second build would take as long again. */
async function makeOld(folder: string): Promise<void> {
  const old = `weir-${OLD}-${PLATFORM}`;
  cpSync(folder, join(top, old), { recursive: true });
  for (const file of globSync("lib/*.cjs", { cwd: join(top, old) })) {
    const path = join(top, old, file);
    const text = readFileSync(path, "latin1");
    if (!text.includes(NEW)) continue;
    writeFileSync(path, text.replaceAll(NEW, OLD), "latin1");
    rmSync(`${path}.code`, { force: true });
  }
  writeFileSync(join(top, old, "version.txt"), `${OLD}\n`);
  await exec("tar", ["-cf", join(top, "old.tar"), "-C", top, old]);
  await exec("gzip", ["-1", join(top, "old.tar")]);
  renameSync(join(top, "old.tar.gz"), join(top, `${old}.tar.gz`));
  const { stdout } = await exec("sha256sum", [`${old}.tar.gz`], { cwd: top });
  writeFileSync(join(top, "SHA256SUMS"), stdout);
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

class World implements AsyncDisposable {
  readonly prefix: string;
  readonly core: Core;
  readonly mixed: number;
  readonly controller: number;

  private constructor(prefix: string, core: Core, [mixed, controller]: readonly [number, number]) {
    this.prefix = prefix;
    this.core = core;
    this.mixed = mixed;
    this.controller = controller;
  }

  /** The old version is installed and runs. */
  static async open(
    name: string,
    byController: boolean,
    { secret = SECRET, more = "" } = {},
  ): Promise<World> {
    const prefix = join(top, name);
    const archive = join(top, `weir-${OLD}-${PLATFORM}.tar.gz`);
    await exec("sh", [join(root, "deploy/install.sh"), "--prefix", prefix, archive]);
    const ports = (await freePorts(2)) as [number, number];
    const key = readFileSync(join(top, "release.pub"), "utf8").trim().replaceAll("\n", "\n    ");
    const { port } = server.address() as AddressInfo;
    const text = `mixed-port: ${ports[0]}
external-controller: 127.0.0.1:${ports[1]}
secret: "${secret}"
svc: { secret: ${SVC_SECRET} }
update:
  url: http://127.0.0.1:${port}/
  public-key: |
    ${key}
  by-controller: ${byController}
${more}`;
    return new World(prefix, await startCore(text, { program: join(prefix, "bin/weir") }), ports);
  }

  weir(...args: readonly string[]) {
    return exec(join(this.prefix, "bin/weir"), [...args]);
  }

  get inForce(): string {
    return readlinkSync(join(this.prefix, "weir"));
  }

  async ask(method: string, path: string, secret = SECRET, body?: object): Promise<Answer> {
    const headers = { authorization: `Bearer ${secret}` };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`http://127.0.0.1:${this.controller}${path}`, { method, headers, ...sent });
    return { status: answer.status, text: await answer.text() };
  }

  /** Waits until these events have come, in any order. */
  async reports(...types: readonly string[]): Promise<void> {
    const headers = { authorization: `Bearer ${SECRET}` };
    const signal = AbortSignal.timeout(60_000); // only there to end a test that fails
    const url = `http://127.0.0.1:${this.controller}/api/svc/events?after=0`;
    const { body } = await fetch(url, { headers, signal });
    let text = "";
    for await (const chunk of body as ReadableStream<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      if (types.every((type) => text.includes(`event: ${type}\n`))) return;
    }
  }

  async version(): Promise<string> {
    return (JSON.parse((await this.ask("GET", "/version")).text) as { version: string }).version;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of processesIn(this.core.home)) process.kill(pid, "SIGKILL");
    await until("all processes end", () => processesIn(this.core.home).length === 0);
    await this.core[Symbol.asyncDispose]();
  }
}

test("weir update takes the signed version, and the weir that runs is replaced by it", { skip }, async () => {
  await using world = await World.open("by-command", false);
  const home = ["-d", world.core.home];
  const { stdout: found } = await world.weir("update", "-check", ...home);
  assert.equal(found, `${NEW} is newer than ${OLD}, which runs: weir update takes it\n`);
  assert.equal(world.inForce, `weir-${OLD}`);
  await using origin = await SteadyOrigin.open();
  const transfer = await openSteadyTransfer(world.mixed, origin.port);
  const { stdout } = await world.weir("update", ...home);
  assert.match(stdout, new RegExp(`\\nupdated: it runs as ${NEW}, in place of ${OLD}\\n$`));
  assert.equal(world.inForce, `weir-${NEW}`);
  assert.equal(await world.version(), NEW);
  origin.finish();
  assert.ok((await transfer.finish()).intact, "a connection of the process before goes on");
  assert.deepEqual(readdirSync(world.prefix).sort(), ["bin", "weir", `weir-${OLD}`, `weir-${NEW}`]);
  const again = await world.weir("update", ...home);
  assert.equal(again.stdout, `${NEW} is the newest version: nothing has changed\n`);
});

test("with -later the weir that runs goes on, and the next call replaces it", { skip }, async () => {
  await using world = await World.open("later", false);
  const home = ["-d", world.core.home];
  const { stdout } = await world.weir("update", "-later", ...home);
  assert.match(stdout, new RegExp(`updated: its next start is ${NEW}, in place of ${OLD}`));
  assert.equal(await world.version(), OLD);
  const { stdout: caughtUp } = await world.weir("update", ...home);
  assert.equal(caughtUp, `${NEW} was in place already, and has taken over from the weir that ran\n`);
  assert.equal(await world.version(), NEW);
});

test(
  "POST /upgrade does the same, for the holder of a secret, with an event and an entry",
  { skip },
  async () => {
    await using world = await World.open("by-controller", true);
    const made = await world.ask("POST", "/api/svc/tokens", SVC_SECRET, {
      name: "deploy",
      scopes: ["admin"],
    });
    const { token } = JSON.parse(made.text) as { token: string };
    assert.equal((await world.ask("POST", "/upgrade", token)).status, 403);
    const alpha = await world.ask("POST", "/upgrade?channel=alpha");
    assert.deepEqual(
      [alpha.status, JSON.parse(alpha.text).message],
      [500, "update error: update.url is one folder without channels: expected none, or release, got alpha"],
    );
    const [first, second] = await Promise.all([
      world.ask("POST", "/upgrade?channel=release"),
      world.ask("POST", "/upgrade"),
    ]);
    const [done, refused] = first.status === 200 ? [first, second] : [second, first];
    assert.deepEqual([done.status, done.text], [200, '{"status":"ok"}']);
    assert.match(refused.text, /update error: an update is being made already/);
    assert.equal(await world.version(), NEW);
    assert.equal(world.inForce, `weir-${NEW}`);
    const newest = await world.ask("POST", "/upgrade");
    assert.equal(newest.status, 500);
    assert.match(newest.text, /update error: .* is the version that runs: there is nothing newer/);
    const log = await world.ask("GET", "/api/svc/audit?action=program.update", SVC_SECRET);
    assert.match(log.text, new RegExp(`"target":"${NEW}"`));
    await world.reports("program.update-failed", "program.upgraded");
  },
);

test(
  "what cannot be handed over leaves the version that runs in place, and both ways say why",
  { skip },
  async () => {
    const lines = [
      "- name: hy",
      "  type: hysteria2",
      "  listen: 127.0.0.1",
      "  port: 0",
      "  users: { ada: letmein }",
    ];
    const more = `listeners:\n${lines.map((line) => `  ${line}\n`).join("")}${TLS_KEYS}`;
    await using world = await World.open("not-handed-over", true, { more });
    const refused =
      /weir 1\.0\.1-20260201-bbbb did not take over, .* goes on: what cannot be handed over yet/;
    await assert.rejects(world.weir("update", "-d", world.core.home), refused);
    assert.match((await world.ask("POST", "/upgrade")).text, refused);
    assert.equal(await world.version(), OLD);
    assert.equal(world.inForce, `weir-${OLD}`);
    assert.deepEqual(readdirSync(world.prefix).sort(), ["bin", "weir", `weir-${OLD}`]);
  },
);

test(
  "the dashboard finds the newer version, and is that of the new one afterwards",
  { skip: skip === false ? noBrowser : skip },
  async () => {
    await using world = await World.open("dashboard", true, { secret: "" });
    await using browser = await openBrowser();
    await using watched = await browser.open();
    const { page } = watched;
    page.setDefaultTimeout(300_000); // only there to end a test that fails
    await page.goto(`http://127.0.0.1:${world.controller}/ui/#/settings`);
    await page.getByText(OLD).first().waitFor();
    await page.getByRole("button", { name: "Check for a newer version" }).click();
    await page.getByRole("button", { name: `Update to ${NEW}` }).click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: `Update to ${NEW}` })
      .click();
    await page.getByText(`${NEW} runs`).waitFor();
    await page.waitForLoadState("load");
    await page.locator("dd", { hasText: NEW }).waitFor();
    assert.equal(world.inForce, `weir-${NEW}`);
  },
);

test(
  "without by-controller the Controller refuses, and without a block update the command does",
  { skip },
  async () => {
    await using world = await World.open("refused", false);
    const refused = await world.ask("POST", "/upgrade");
    assert.equal(refused.status, 500);
    assert.match(refused.text, /update\.by-controller is not set/);
    const empty = join(top, "empty.yaml");
    writeFileSync(empty, "mixed-port: 7890\n");
    await assert.rejects(
      world.weir("update", "-d", top, "-f", empty),
      /set update\.url.* and update\.public-key/,
    );
    assert.equal(world.inForce, `weir-${OLD}`);
  },
);
