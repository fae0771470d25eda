/** `weir top` beside a running weir, on a pseudo-terminal (script, of util-linux) and off one. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { cells } from "../../src/cli/top/cells.ts";
import { freePort, missing } from "../support/peer.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const WEIR = join(import.meta.dirname, "../../bin/weir");
const WAIT = { withinMs: 60_000 };
const WORDS = ["top", "-every", "0.5"] as const;

async function running(): Promise<Core> {
  const port = await freePort();
  return startCore(`listeners: [{ name: in, type: socks, listen: 127.0.0.1, port: 0 }]
external-controller: 127.0.0.1:${port}
secret: s
traffic-control:
  enabled: true
  global: { id: everything, name: Everything }
rules: ["MATCH,DIRECT"]
`);
}

/** A connection that stays, with bytes on it. */
async function client(core: Core, origin: number) {
  const { client: through } = await socksConnect(await core.port("in"), "127.0.0.1", origin);
  through.send(Buffer.alloc(5_000));
  await through.read(5_000);
  return through;
}

test("off a terminal: plain text, no control sequence", async () => {
  await using core = await running();
  await using origin = await openTcpOrigin(echo);
  using _through = await client(core, origin.port);
  const said = spawnSync(WEIR, [...WORDS, "-d", core.home], { encoding: "utf8" });
  assert.equal(said.status, 0, said.stderr);
  assert.doesNotMatch(said.stdout.replaceAll("\n", ""), /\p{Cc}/u);
  assert.match(said.stdout, /^weir 127\.0\.0\.1:\d+ .* 1 connections/);
  assert.match(said.stdout, new RegExp(`^127\\.0\\.0\\.1:${origin.port} → DIRECT`, "m"));
  assert.match(said.stdout, /^global Everything +1 /m);
  for (const line of said.stdout.split("\n")) assert.ok(cells(line) <= 80, line);
  const report = (...words: readonly string[]) =>
    spawnSync(WEIR, ["report", ...words, "-d", core.home], { encoding: "utf8" });
  const mail = report("-month", new Date().toISOString().slice(0, 7), "-mail", "me@example.com");
  const [, body = ""] = mail.stdout.split("\r\n\r\n");
  assert.match(mail.stdout, /^To: me@example\.com\r\nSubject: weir: Traffic in /);
  assert.match(Buffer.from(body, "base64").toString(), /^<!doctype html>.*Everything/s);
  for (const line of report("-format", "ndjson", "-key", "global:everything").stdout.trim().split("\n"))
    assert.equal((JSON.parse(line) as { readonly key: string }).key, "global:everything");
  assert.match(report("-format", "csv", "-key", "global:everything").stdout, /,5000,5000,1,0\n$/);
  assert.equal(report("-mail", "me@example.com\r\nBcc: you@example.com").status, 2);
  await core.stop();
  const gone = spawnSync(WEIR, [...WORDS, "-d", core.home], { encoding: "utf8" });
  assert.equal(gone.status, 1);
  assert.match(gone.stderr, /the running weir cannot be asked/);
});

test(
  "on a terminal: a screen of its own, keys, and the terminal as it was",
  { skip: missing("script") },
  async () => {
    await using core = await running();
    await using origin = await openTcpOrigin(echo);
    using _through = await client(core, origin.port);
    const on = (env: NodeJS.ProcessEnv) => {
      const command = `stty cols 80 rows 24; exec '${WEIR}' ${WORDS.join(" ")} -d '${core.home}'`;
      const child = spawn("script", ["-qfec", command, "/dev/null"], {
        env: { ...process.env, SHELL: "/bin/sh", NO_COLOR: "", TERM: "xterm", ...env },
        stdio: ["pipe", "pipe", "inherit"],
      });
      let shown = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => (shown += text));
      return {
        child,
        ended: once(child, "close"),
        shown: () => shown,
        [Symbol.dispose]: () => void child.kill(),
      };
    };

    using coloured = on({});
    await until("the connection", () => coloured.shown().includes("→ DIRECT"), WAIT);
    assert.ok(coloured.shown().includes("\u001b[?1049h") && coloured.shown().includes("\u001b[7m"));
    const [, frame = ""] = coloured.shown().split("\u001b[H");
    const lines = frame.split("\u001b[J")[0]?.split(/\r+\n/) ?? [];
    assert.ok(lines.length <= 24, `${lines.length} lines`);
    for (const line of lines) assert.ok(cells(stripVTControlCharacters(line)) <= 80, line);
    coloured.child.stdin.write("\t");
    await until(
      "the next view",
      () => coloured.shown().split("\u001b[H").at(-1)?.includes("POLICY") === false,
      WAIT,
    );
    coloured.child.stdin.write("q");
    const [code] = await coloured.ended;
    assert.equal(code, 0);
    assert.ok(coloured.shown().trimEnd().endsWith("\u001b[?1049l"));

    using bare = on({ NO_COLOR: "1" });
    await until("the connection", () => bare.shown().includes("→ DIRECT"), WAIT);
    bare.child.stdin.write("\u0003");
    await bare.ended;
    for (const part of bare.shown().split("\u001b[")) assert.doesNotMatch(part, /^[\d;]*[1-9]\d*m/);
    assert.ok(bare.shown().trimEnd().endsWith("\u001b[?1049l"));

    using dumb = on({ TERM: "dumb" });
    await until("the connection", () => dumb.shown().includes("→ DIRECT"), WAIT);
    assert.ok(!dumb.shown().includes("\u001b"));
    dumb.child.kill();
    await dumb.ended;
  },
);
