/** The command line (controller-api.md §1), run as a process. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";

const weir = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "bin", "weir");

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[], input = "", env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  const child = spawn(weir, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdin.on("error", () => undefined).end(input); // a program that does not read closes it early
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

function home(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "weir-cli-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const GOOD = "mixed-port: 0\nrules: ['MATCH,DIRECT']\n";

test("-v: one line, the version is the third word", async () => {
  const { code, stdout } = await run(["-v"]);
  assert.equal(code, 0);
  assert.match(stdout, /^Weir Meta \S+ linux x64 .*\n$/);
});

test("a reader that has seen enough ends a command without a fault", async () => {
  const child = spawn(weir, ["schema"], { stdio: ["ignore", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdout.once("data", () => child.stdout.destroy());
  const [code] = (await once(child, "close")) as [number | null];
  assert.deepEqual([code, stderr], [0, ""]);
});

test("-t names listeners that could not be opened, and binds nothing for it", async (context) => {
  const [port] = await freePorts(1);
  const text = `mixed-port: ${port}
listeners:
  - {name: bare, type: trojan, port: ${port}, users: [{username: a, password: hidden}]}
  - {name: twice, type: vless, port: 0, allow-insecure: true, users: [{uuid: x}, {uuid: x}]}
  - {name: cert, type: mixed, port: 0, certificate: none.pem, private-key: none.key}
  - {name: fine, type: http, port: 0}
`;
  const { code, stdout } = await run(["-t", "-d", home(context), "-f", "-"], text);
  assert.equal(code, 0);
  const lines = stdout
    .split("\n")
    .filter((line) => line.includes("a start leaves it out, a reload is refused"));
  assert.deepEqual(
    lines.map((line) => /msg="configuration:(\d:5 listeners\[\d\]: listener \w+): /.exec(line)?.[1]),
    [
      "3:5 listeners[0]: listener bare",
      "4:5 listeners[1]: listener twice",
      "5:5 listeners[2]: listener cert",
    ],
  );
  assert.match(lines[0] ?? "", /hides nothing by itself: set certificate and private-key/);
  assert.doesNotMatch(stdout, /hidden/);
});

test("link: listeners without links say why, with the keys", async (context) => {
  const user = "users: [{username: a, uuid: 11111111-1111-4111-8111-111111111111}]";
  const text = `listeners:
  - {name: plain, type: vless, listen: 127.0.0.1, port: 1001, ${user}}
  - {name: formed, type: vless, listen: 127.0.0.1, port: 1002, ${user}, xhttp-config: {session-key: k}}
  - {name: tuned, type: vless, listen: 127.0.0.1, port: 1003, ${user}, xhttp-config: {no-sse-header: true}}
`;
  const { code, stdout, stderr } = await run(["link", "-d", home(context), "-f", "-"], text);
  assert.equal(code, 0);
  assert.match(stdout, /^vless:\/\/[^\n]+:1001\?[^\n]+#plain%20a\n$/);
  const [formed, tuned, ...more] = stderr.trim().split("\n");
  assert.match(formed ?? "", /:3:\d+ listeners\[1\]\.xhttp-config\.session-key: .*the listener is left out$/);
  assert.match(tuned ?? "", /^listener tuned has no link: a link cannot carry xhttp-config\.no-sse-header,/);
  assert.deepEqual(more, []);
});

test("a start without a reachable listener says so", async () => {
  const listener = (port: number): string =>
    `listeners: [{ name: only, type: mixed, listen: 127.0.0.1, port: ${port} }]\n`;
  await using first = await startCore(listener(0));
  await using second = await startCore(listener(await first.port("only")));
  await second.shows(/another program listens there \(EADDRINUSE\)/);
  await second.shows(/level=error msg="no client can reach it: no listener, TUN or controller is open/);
  assert.doesNotMatch(first.output(), /no client can reach it/);
});

test("an unknown flag is a usage error with exit code 2", async () => {
  const { code, stderr } = await run(["-nope"]);
  assert.equal(code, 2);
  assert.match(stderr, /-nope/);
  assert.match(stderr, /-ext-ctl ADDR/);
});

test("help and version are found by every name that people try, and every command tells its own", async () => {
  const { stdout } = await run(["-h"]);
  assert.match(stdout, /-ext-ctl ADDR/);
  for (const args of [["-help"], ["--help"], ["help"]])
    assert.deepEqual(await run(args), { code: 0, stdout, stderr: "" });
  assert.match((await run(["--version"])).stdout, /^Weir Meta /);
  for (const [command, words] of Object.entries({
    explain: /-source IP/,
    link: /-host HOST/,
    users: /export/,
  })) {
    const help = await run([command, "--help"]);
    assert.equal(help.code, 0);
    assert.match(help.stdout, words);
  }
  const token = await run(["token", "-help"]);
  assert.deepEqual(await run(["token", "create", "-help"]), token);
  const wrong = await run(["explain", "-nope"]);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /-nope\n.*-source IP/s);
});

test("what is no configuration file is called what it is", async (context) => {
  const folder = home(context);
  const absent = join(folder, "absent.yaml");
  assert.match((await run(["-f", absent])).stdout, new RegExp(`there is no ${absent}`));
  assert.match((await run(["-t", "-f", folder])).stdout, new RegExp(`${folder} is a folder`));
  writeFileSync(absent, GOOD);
  const fileAsHome = await run(["-t", "-d", absent]);
  assert.equal(fileAsHome.code, 1);
  assert.match(fileAsHome.stdout, new RegExp(`cannot use ${absent} as the home directory`));
});

test("controller-api.md §15.12 -t: a file, standard input, base64; good and bad", async (context) => {
  const folder = home(context);
  const file = join(folder, "my.yaml");
  writeFileSync(file, GOOD);
  const good = await run(["-d", folder, "-t", "-f", file]);
  assert.deepEqual([good.code, good.stdout], [0, `configuration file ${file} test is successful\n`]);
  assert.deepEqual(
    (await run(["-d", folder, "-t", "-f", "-"], GOOD)).stdout,
    "configuration test is successful\n",
  );
  const encoded = Buffer.from("mode: nope\n").toString("base64");
  const bad = await run(["-d", folder, "-t", "-config", encoded]);
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /^time="[^"]+" level=error msg="\S+:1:7 mode: .*\nconfiguration test failed\n$/s);
  writeFileSync(file, " \n");
  const empty = await run(["-d", folder, "-t", "-f", file]);
  assert.equal(empty.code, 1);
  assert.match(empty.stdout, /empty/);
  assert.equal((await run(["-d", folder, "-t", "-f", join(folder, "absent.yaml")])).code, 1);
});

test("a bad configuration ends the start with exit code 1 and every error", async (context) => {
  const { code, stdout } = await run(
    ["-d", home(context), "-f", "-"],
    "mode: nope\nlog-level: loud\nprots: 1\n",
  );
  assert.equal(code, 1);
  assert.match(stdout, /level=warning msg="\S+:3:1 prots: unknown key/);
  assert.match(stdout, /level=fatal msg="\S+:1:7 mode: /);
  assert.match(stdout, /level=fatal msg="\S+:2:12 log-level: /);
});

test("explain: the deciding rule and why the earlier ones do not", async (context) => {
  const file = join(home(context), "my.yaml");
  writeFileSync(
    file,
    "rules:\n  - DOMAIN-SUFFIX,example.com,REJECT\n  - AND,((NETWORK,udp),(DST-PORT,443)),REJECT\n  - MATCH,DIRECT\n",
  );
  const { code, stdout } = await run(["explain", "www.example.org:443", "-f", file]);
  assert.equal(code, 0);
  assert.match(stdout, /DomainSuffix example\.com → REJECT: no/);
  assert.match(stdout, /Match → DIRECT matches: DIRECT\n$/);
  const udp = await run([
    "explain",
    "www.example.org:443",
    "-f",
    file,
    "--network",
    "udp",
    "--source",
    "10.0.0.1",
  ]);
  assert.match(udp.stdout, /\(\(Network,udp\) && \(DstPort,443\)\) → REJECT matches: REJECT/);
  assert.equal((await run(["explain", "-f", file])).code, 2);
  const url = await run(["explain", "http://www.example.com/a?b", "-f", file]);
  assert.match(url.stdout, /^www\.example\.com:80 tcp .*example\.com → REJECT matches: REJECT\n$/s);
  const nonsense = await run(["explain", "no host", "-f", file]);
  assert.equal(nonsense.code, 2);
  assert.match(
    nonsense.stderr,
    /expected a name, an address, host:port.*got "no host"\n.*usage: weir explain/s,
  );
});

test("npm start -- COMMAND runs the command; flags before one are refused with their right place", async () => {
  const { code, stdout } = await run(["--embedded", "schema"]);
  assert.equal(code, 0);
  assert.ok("rules" in (JSON.parse(stdout) as { properties: object }).properties);
  const late = await run(["-m", "schema"]);
  assert.equal(late.code, 2);
  assert.match(late.stderr, /a command comes first, its flags behind it: weir schema/);
  assert.match((await run(["nonsense"])).stderr, /unknown command nonsense; known: explain, schema/);
  assert.match(
    (await run(["check", "-f", "a"])).stderr,
    /unknown command check: weir -t checks a configuration/,
  );
  assert.match((await run(["tokn"])).stderr, /unknown command tokn; did you mean "token"\?; known: /);
});

test("schema prints the JSON Schema of the file; generate uuid prints one", async () => {
  const { properties } = JSON.parse((await run(["schema"])).stdout) as {
    properties: Record<string, unknown>;
  };
  for (const key of ["mixed-port", "proxies", "rules", "dns"]) assert.ok(key in properties, key);
  const ech = await run(["generate", "ech-keypair", "www.example.com"]);
  assert.match(ech.stdout, /^ech-opts: .*\nech-key: \|\n {2}-----BEGIN ECH KEYS-----\n/);
  assert.match((await run(["generate", "ech-keypair"])).stderr, /expected ech-keypair NAME/);
  assert.match((await run(["generate", "ech-keypair", "127.0.0.1"])).stderr, /expected the host name/);
  assert.match((await run(["generate", "uuid"])).stdout, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\n$/);
});

test("a missing default file is made, named and used", async (context) => {
  const folder = join(home(context), "new home");
  const { stdout } = await run(["-d", folder, "-t"]);
  assert.match(
    stdout,
    /level=info msg="there was no configuration: a start makes .*config\.yaml, with mixed-port/,
  );
  assert.match(stdout, /test is successful/);
  assert.ok(!existsSync(folder), "-t writes nothing, ever");
  const started = await run(["-d", folder, "-post-up", "exit 1"]);
  assert.match(
    started.stdout,
    /level=info msg="there was no configuration: .*config\.yaml was made, with mixed-port/,
  );
  assert.equal(readFileSync(join(folder, "config.yaml"), "utf8"), "mixed-port: 7890\n");
  assert.doesNotMatch((await run(["-d", folder, "-t"])).stdout, /a start makes/);
});

test("controller-api.md §15.12 flags and environment win over the file, also after PUT /configs", async () => {
  const [controller, other] = (await freePorts(2)) as [number, number];
  const text = `mixed-port: 0\nexternal-controller: 127.0.0.1:${other}\nsecret: from-file\n`;
  await using core = await startCore(text, {
    args: ["-ext-ctl", `127.0.0.1:${controller}`],
    env: { CLASH_OVERRIDE_SECRET: "from-environment" },
  });
  const status = async (secret: string, method = "GET", path = "/version") =>
    (
      await fetch(`http://127.0.0.1:${controller}${path}`, {
        method,
        headers: { authorization: `Bearer ${secret}` },
        ...(method === "PUT" ? { body: JSON.stringify({ path: "" }) } : {}),
      })
    ).status;
  assert.equal(await status("from-file"), 401);
  assert.equal(await status("from-environment"), 200);
  assert.equal(await status("from-environment", "PUT", "/configs?force=true"), 204);
  assert.equal(await status("from-environment"), 200);
  process.kill(core.pid, "SIGHUP");
  await core.shows(/configuration reloaded/);
  assert.equal(await status("from-environment"), 200);
  assert.doesNotMatch(core.output(), /from-environment|from-file/);
});

test("an empty secret on a reachable address is replaced by one that is kept owner-only", async () => {
  const [controller] = (await freePorts(1)) as [number];
  await using core = await startCore(`mixed-port: 0\nexternal-controller: 0.0.0.0:${controller}\n`);
  const file = join(core.home, "controller-secret");
  assert.ok(existsSync(file));
  const secret = readFileSync(file, "utf8").trim();
  assert.match(core.output(), /level=warning msg="secret: /);
  assert.ok(!core.output().includes(secret));
  const answer = (headers: Record<string, string>) =>
    fetch(`http://127.0.0.1:${controller}/version`, { headers });
  assert.equal((await answer({})).status, 401);
  assert.equal((await answer({ authorization: `Bearer ${secret}` })).status, 200);
});
