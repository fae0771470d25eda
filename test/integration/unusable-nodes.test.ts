/** One node that this build cannot speak does not cost the profile. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";

const weir = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "bin", "weir");

const PROFILE = `
proxies:
  - { name: quic, type: hysteria2, server: 192.0.2.1, port: 443, password: x }
  - name: reality
    type: vless
    server: 192.0.2.1
    port: 443
    uuid: b831381d-6324-4d53-ad4f-8cda48b30811
    tls: true
    reality-opts: { public-key: jNXHt1yRo0vDuchQlIP6Z0ZvjT3KtzVI-T4E7RoLJS0, short-id: "0123" }
  - { name: plain, type: direct }
proxy-groups:
  - { name: Mixed, type: select, proxies: [reality, plain] }
  - { name: Hopeless, type: select, proxies: [reality, quic] }
rules: ["MATCH,Mixed"]
`;

test("the rest of the profile works, and every such node and group is named", async () => {
  const [controller] = (await freePorts(1)) as [number];
  await using core = await startCore(`external-controller: 127.0.0.1:${controller}\n${PROFILE}`);
  assert.match(core.output(), /level=warning msg="\S+config\.yaml:\d+:\d+ proxies\[0\]\.type: .*hysteria2/);
  assert.match(core.output(), /level=warning msg="proxy reality: .*REALITY.*cannot be dialled"/);
  assert.match(core.output(), /level=warning msg="group Hopeless: none of its members can be dialled/);
  assert.doesNotMatch(core.output(), /group Mixed/);
  const delay = await fetch(
    `http://127.0.0.1:${controller}/proxies/reality/delay?timeout=1000&url=http://192.0.2.1/`,
  );
  assert.equal(delay.status, 503);
});

test("-t names them, too", async () => {
  const encoded = Buffer.from(PROFILE).toString("base64");
  const { stdout } = await promisify(execFile)(weir, ["-d", "/nonexistent", "-t", "-config", encoded]);
  assert.match(stdout, /proxies\[0\]\.type: .*hysteria2/);
  assert.match(stdout, /proxy reality: .*REALITY/);
  assert.match(stdout, /configuration test is successful\n$/);
});

test("a provider keeps its other nodes", async () => {
  const [controller] = (await freePorts(1)) as [number];
  const [, reality = ""] = /(- name: reality[^]*?short-id: "0123" })/.exec(PROFILE) ?? [];
  await using core = await startCore(`
external-controller: 127.0.0.1:${controller}
proxy-providers:
  far:
    type: inline
    payload:
      ${reality.replaceAll("\n", "\n    ")}
      - { name: plain, type: direct }
proxy-groups:
  - { name: Mixed, type: select, use: [far] }
rules: ["MATCH,Mixed"]
`);
  assert.match(core.output(), /level=warning msg="proxy reality: .*REALITY.*cannot be dialled"/);
  const answer = await fetch(`http://127.0.0.1:${controller}/providers/proxies/far`);
  const { proxies } = (await answer.json()) as { proxies: readonly { name: string }[] };
  assert.deepEqual(
    proxies.map(({ name }) => name),
    ["reality", "plain"],
  );
});
