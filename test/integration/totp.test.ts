/** One-time codes before the secrets, over real sockets: the API, commands of this machine, tokens, a restart, a reload. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { once } from "node:events";
import { decodeBase32 } from "#lib/base32.ts";
import { codeOf, stepAt } from "#journal/totp.ts";
import { freePorts } from "../support/free-ports.ts";
import { stateFolder } from "../support/managed-core.ts";
import { startCore, type Core } from "../support/start-core.ts";

const SECRET = "controller secret of this test";
const ADMIN_SECRET = "admin secret of this test, of 32 bytes";
const weir = join(import.meta.dirname, "../../bin/weir");

interface World {
  readonly folder: string;
  readonly port: number;
  readonly config: string;
  readonly key: Buffer;
}

/** `weir totp` has written the file. */
async function worldIn(folder: string): Promise<World> {
  const [port = 0] = await freePorts(1);
  const file = join(folder, "totp.txt");
  const made = spawnSync(weir, ["totp", "-name", "a host", file], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  const secret = readFileSync(file, "utf8").trim();
  assert.match(secret, /^[A-Z2-7]{32}$/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.ok(
    made.stdout.includes(
      `otpauth://totp/weir:a%20host?secret=${secret}&issuer=weir&algorithm=SHA1&digits=6&period=30`,
    ),
  );
  assert.match(made.stdout, /█▀|▄█/, "a QR code");
  const again = spawnSync(weir, ["totp", file], { encoding: "utf8" });
  assert.notEqual(again.status, 0, "a secret is never overwritten");
  assert.equal(readFileSync(file, "utf8").trim(), secret);
  const key = decodeBase32(secret) ?? assert.fail();
  const config = `external-controller: 127.0.0.1:${port}
secret: ${SECRET}
svc: { secret: "${ADMIN_SECRET}", store: ${join(folder, "users.db")}, managed-listeners: [edge], totp-file: ${file} }
listeners:
  - { name: edge, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [] }
`;
  return { folder, port, config, key };
}

const start = ({ config, folder }: World): Promise<Core> =>
  startCore(config, { env: { SAFE_PATHS: folder } });

async function ask({ port }: World, method: string, path: string, bearer: string, body?: object) {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { authorization: `Bearer ${bearer}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const json = (text.startsWith("{") ? JSON.parse(text) : {}) as {
    token?: string;
    message?: string;
    details?: readonly { readonly path: string }[];
  };
  return { status: answer.status, retryAfter: Number(answer.headers.get("retry-after")), ...json };
}

const signIn = (world: World, secret: string, body?: object) =>
  ask(world, "POST", "/api/svc/session", secret, body);

/** What a WebSocket of this path answers to a credential in its address. */
async function webSocketStatus({ port }: World, bearer: string): Promise<number> {
  const asked = request({
    port,
    host: "127.0.0.1",
    path: `/traffic?token=${encodeURIComponent(bearer)}`,
    headers: {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": Buffer.alloc(16).toString("base64"),
    },
  }).end();
  const [answer] = await Promise.race([once(asked, "response"), once(asked, "upgrade")]);
  asked.destroy();
  return (answer as { readonly statusCode: number }).statusCode;
}

test("the secrets open nothing by themselves; with a code, once, they open a session; commands and tokens go on", async () => {
  using state = stateFolder();
  const world = await worldIn(state.path);
  let code = "";
  let step = 0;
  let session = "";
  {
    await using core = await start(world);
    await core.shows(/svc.totp-file: a secret opens nothing without a code/);
    for (const [path, secret] of [
      ["/configs", SECRET],
      ["/api/svc/backup", SECRET],
      ["/api/admin/users", ADMIN_SECRET],
      ["/api/svc/tokens", ADMIN_SECRET],
    ] as const) {
      const said = await ask(world, "GET", path, secret);
      assert.equal(said.status, 401, path);
      assert.equal(said.details?.[0]?.path, "code", path);
      assert.equal((await ask(world, "GET", path, "wrong")).details, undefined);
    }
    assert.equal(await webSocketStatus(world, SECRET), 401);
    const asked = await signIn(world, SECRET);
    assert.deepEqual([asked.status, asked.details?.[0]?.path], [401, "code"]);
    assert.equal((await signIn(world, SECRET, { code: 123456 })).status, 400);
    assert.equal((await signIn(world, "wrong", { code: "123456" })).message, "Unauthorized");
    step = stepAt(Date.now());
    code = codeOf(world.key, step);
    const opened = await signIn(world, SECRET, { code: `${code.slice(0, 3)} ${code.slice(3)}` });
    assert.equal(opened.status, 201, String(opened.message));
    session = opened.token ?? "";
    assert.equal((await ask(world, "GET", "/configs", session)).status, 200);
    assert.equal(await webSocketStatus(world, session), 101);
    assert.equal((await ask(world, "GET", "/api/admin/users", session)).status, 401, "the other secret's");
    const used = await signIn(world, ADMIN_SECRET, { code });
    assert.match(String(used.message), /used already/);
    const second = await signIn(world, ADMIN_SECRET, { session });
    assert.equal(second.status, 201, "one code is enough for both");
    assert.equal((await ask(world, "GET", "/api/admin/users", second.token ?? "")).status, 200);
    assert.equal((await signIn(world, ADMIN_SECRET, { session: "x".repeat(43) })).status, 401);
    commands(world, core);
  }
  await using core = await start(world);
  assert.equal((await ask(world, "GET", "/configs", session)).status, 401, "sessions end with the process");
  // "wrong" where the start took so long that the code is of no step any more
  const again = await signIn(world, SECRET, { code });
  assert.match(`${again.status} ${again.message}`, /^401 .*(used already|is wrong)/, "after a restart, too");
  const next = await signIn(world, SECRET, {
    code: codeOf(world.key, Math.max(step + 1, stepAt(Date.now()))),
  });
  assert.equal(next.status, 201, String(next.message));
  const wrong = Array.from({ length: 4 }, () => signIn(world, SECRET, { code: "000000" }));
  for (const { status } of await Promise.all(wrong)) assert.equal(status, 401);
  const later = await signIn(world, SECRET, { code: codeOf(world.key, stepAt(Date.now()) + 1) });
  assert.equal(later.status, 429);
  assert.ok(later.retryAfter > 800 && later.retryAfter <= 900, String(later.retryAfter));
  const printed = core.output();
  assert.match(printed, /a wrong code with the right secret, from 127\.0\.0\.1/);
  for (const secret of [SECRET, ADMIN_SECRET, readFileSync(join(world.folder, "totp.txt"), "utf8").trim()])
    assert.ok(!printed.includes(secret));
});

/** Those that ask the running weir: who can read the file needs no code. */
function commands({ folder }: World, { home }: Core): void {
  const env = { ...process.env, SAFE_PATHS: folder };
  const run = (...args: readonly string[]) => spawnSync(weir, args, { env, encoding: "utf8" });
  const source = ["-d", home];
  const top = run("top", "-n", "1", ...source);
  assert.equal(top.status, 0, top.stderr);
  const backup = run("backup", ...source, join(folder, "weir.backup"));
  assert.equal(backup.status, 0, backup.stderr);
  const made = run("token", "create", ...source, "-scopes", "read", "panel");
  assert.equal(made.status, 0, made.stderr);
  const [token = ""] = made.stdout.split("\n");
  const port = /external-controller: 127\.0\.0\.1:(\d+)/.exec(
    readFileSync(join(home, "config.yaml"), "utf8"),
  )?.[1];
  const asked = spawnSync("curl", [
    "-fsS",
    "-H",
    `authorization: Bearer ${token}`,
    `http://127.0.0.1:${port}/version`,
  ]);
  assert.equal(asked.status, 0, "a token needs no code");
}

test("a file that others can read, without a secret or missing, and an open Controller are refused at the start", async () => {
  using state = stateFolder();
  const world = await worldIn(state.path);
  const file = join(world.folder, "totp.txt");
  const refused = async (config: string, why: RegExp): Promise<void> =>
    assert.rejects(startCore(config, { env: { SAFE_PATHS: world.folder } }), why);
  await refused(
    world.config.replace(`secret: ${SECRET}\n`, ""),
    /svc.totp-file: the Controller has no secret/,
  );
  chmodSync(file, 0o640);
  await refused(world.config, /svc.totp-file: .*others can read it/);
  chmodSync(file, 0o600);
  writeFileSync(file, "too short");
  await refused(world.config, /has no secret in base32/);
  await refused(world.config.replace(file, `${file}.missing`), /svc.totp-file: .*no such file/);
});

test("a reload that asks for codes ends the sessions that began without one", async () => {
  using state = stateFolder();
  const world = await worldIn(state.path);
  const without = world.config.replace(/, totp-file: [^ ]+/, "");
  await using core = await startCore(without, { env: { SAFE_PATHS: world.folder } });
  assert.equal(
    (await ask(world, "GET", "/configs", SECRET)).status,
    200,
    "nothing has changed without the key",
  );
  const { token = "" } = await signIn(world, SECRET);
  assert.equal((await ask(world, "GET", "/configs", token)).status, 200);
  await core.reload(world.config);
  await core.shows(/svc.totp-file: a secret opens nothing/);
  for (const credential of [SECRET, token])
    assert.equal((await ask(world, "GET", "/configs", credential)).status, 401);
});
