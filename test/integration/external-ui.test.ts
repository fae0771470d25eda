/** `external-ui`: downloaded at the first start and on demand, replaced whole or not at all. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tarGz, zip } from "../support/archives.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";
import { openWebOrigin } from "../support/web-origin.ts";

/** Serves what `state.body` holds, behind one redirect. */
async function openMirror() {
  const state: { body: Uint8Array; served: number } = { body: Buffer.alloc(0), served: 0 };
  const web = await openWebOrigin((request, response) => {
    if (request.url === "/ui.zip") return void response.writeHead(302, { location: "/file" }).end();
    state.served++;
    response.end(state.body);
  });
  return { ...web, state, url: `${web.url}/ui.zip` };
}

const site = (text: string) => [
  { name: "site-gh-pages/", folder: true },
  { name: "site-gh-pages/index.html", text },
];

async function upgrade(base: string): Promise<readonly [number, string]> {
  const answer = await fetch(`${base}/upgrade/ui`, { method: "POST" });
  return [answer.status, await answer.text()];
}

test("the first start downloads the dashboard, POST /upgrade/ui replaces it, bad archives change nothing", async () => {
  await using mirror = await openMirror();
  mirror.state.body = zip(site("first"));
  const [port] = (await freePorts(1)) as [number];
  await using core = await startCore(
    `external-controller: 127.0.0.1:${port}\nexternal-ui: ui\nexternal-ui-name: board\nexternal-ui-url: ${mirror.url}\n`,
  );
  const base = `http://127.0.0.1:${port}`;
  await core.shows(/external-ui: \S+ holds the new dashboard/);
  const first = await fetch(`${base}/ui/`);
  assert.deepEqual([first.status, await first.text()], [200, "first"]);
  assert.equal(
    first.headers.get("content-security-policy"),
    null,
    "another's dashboard gets no policy of ours",
  );

  mirror.state.body = tarGz(site("second"));
  assert.deepEqual(await upgrade(base), [200, '{"status":"ok"}']);
  assert.equal(await (await fetch(`${base}/ui/`)).text(), "second");

  for (const [body, why] of [
    [zip([...site("evil"), { name: "../../config.yaml", text: "mode: direct" }]), /leads out/],
    [tarGz([...site("evil"), { name: "l", text: "", mode: 0o120777 }]), /link/],
    [zip([{ name: "readme.txt", text: "" }]), /no index.html/],
    [Buffer.from("<html>not an archive</html>"), /neither zip nor tar.gz/],
  ] as const) {
    mirror.state.body = body;
    const [status, text] = await upgrade(base);
    assert.equal(status, 500);
    assert.match(text, why);
    assert.equal(await (await fetch(`${base}/ui/`)).text(), "second");
  }
  assert.deepEqual(readdirSync(join(core.home, "ui")), ["board"]);
  assert.match(readFileSync(join(core.home, "config.yaml"), "utf8"), /external-ui: ui/);
});

test("a folder of others is neither downloaded into nor replaced, nor is one served that holds secrets", async () => {
  await using mirror = await openMirror();
  mirror.state.body = zip(site("new"));
  const [port] = (await freePorts(1)) as [number];
  const head = `external-controller: 127.0.0.1:${port}\nexternal-ui-url: ${mirror.url}\nexternal-ui: `;
  await using core = await startCore(`${head}ui\n`, {
    seed(home) {
      mkdirSync(join(home, "ui"));
      writeFileSync(join(home, "ui", "index.html"), "my own page");
      writeFileSync(join(home, "key.pem"), "-----BEGIN PRIVATE KEY-----");
      mkdirSync(join(home, "certs"));
      writeFileSync(join(home, "certs", "key.pem"), "-----BEGIN PRIVATE KEY-----");
    },
  });
  const base = `http://127.0.0.1:${port}`;
  const [status, text] = await upgrade(base);
  assert.equal(status, 500);
  assert.match(text, /files that weir has not put there/);
  assert.equal(await (await fetch(`${base}/ui/`)).text(), "my own page");
  await core.reload(
    `${head}.\n`,
    /reload failed[^]*external-ui: .*would be served to everybody with .* in it/,
  );
  const tls = "tls: {certificate: certs/key.pem, private-key: certs/key.pem}\n";
  await core.reload(
    `${head}certs\n${tls}`,
    /reload failed[^]*external-ui: .*certs would be served to everybody/,
  );
  await core.reload(
    `${head}fresh\nexternal-ui-url: http://127.0.0.1:1/x.zip\n`.replace(
      `external-ui-url: ${mirror.url}\n`,
      "",
    ),
    /level=warning msg="external-ui: /,
  );
  assert.equal(existsSync(join(core.home, "fresh")), false);
  assert.equal(mirror.state.served, 0);
});

test("without external-ui there is the built-in one, and nothing to download", async () => {
  const [port] = (await freePorts(1)) as [number];
  await using _core = await startCore(`external-controller: 127.0.0.1:${port}\nsecret: s\n`);
  const base = `http://127.0.0.1:${port}`;
  const page = await fetch(`${base}/ui/`);
  assert.equal(page.status, 200, "built by scripts/setup.mjs");
  assert.match(
    page.headers.get("content-security-policy") ?? "",
    /^default-src 'none'; script-src 'self'; style-src 'self'/,
  );
  const html = await page.text();
  assert.doesNotMatch(html, /<style|style=|<script(?![^>]*src=)|\son\w+=/, "nothing inline");
  for (const [, file] of html.matchAll(/(?:src|href)="([^"]+)"/g))
    assert.equal((await fetch(`${base}/ui/${String(file)}`)).status, 200, String(file));
  const answer = await fetch(`${base}/upgrade/ui`, {
    method: "POST",
    headers: { authorization: "Bearer s" },
  });
  assert.equal(answer.status, 500);
  assert.match(await answer.text(), /not set/);
});
