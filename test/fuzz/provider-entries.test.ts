/** One node of a subscription is changed at random, in each form that a subscription can have: the others stay as they were. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { REGISTRIES } from "#cli/parse-env.ts";
import type { ProxyConfig } from "#config/config.ts";
import { parseConfig } from "#config/parse.ts";
import { Slices } from "#core/slices.ts";
import { contentIn } from "#documents/node-list.ts";
import { readItems } from "#runtime/nodes.ts";
import { GOOD_ENTRIES } from "../support/good-entries.ts";
import { mutated, pick } from "../support/mutated.ts";
import { randomFrom } from "../support/random.ts";

/** `ENTRY_MUTATIONS=2000` makes more of them. */
const MUTATIONS = Number(process.env["ENTRY_MUTATIONS"] ?? 300);

const NODES = GOOD_ENTRIES.filter(({ section }) => section === "proxies").map(({ value }) => value);

const UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
const VMESS = {
  v: "2",
  ps: "vmess",
  add: "a.example.org",
  port: 443,
  id: UUID,
  aid: 0,
  net: "ws",
  tls: "tls",
};
const LINKS = [
  "ss://YWVzLTEyOC1nY206cA@a.example.org:443#ss",
  `vmess://${Buffer.from(JSON.stringify(VMESS)).toString("base64")}`,
  `vless://${UUID}@a.example.org:443?security=tls&type=grpc&serviceName=g#vless`,
  "trojan://p@a.example.org:443?sni=b.example.org#trojan",
  "anytls://p@a.example.org:443#anytls",
  "socks://dTpw@a.example.org:443#socks",
];

const files = { resolve: (path: string) => path };

async function nodesIn(text: string): Promise<readonly ProxyConfig[]> {
  const setting = "proxy-providers: {p: {type: file, path: p}}\n";
  const { config } = parseConfig(setting, { registries: REGISTRIES, files, userAgent: "test" });
  const provider = config?.proxyProviders.get("p");
  assert.ok(provider !== undefined);
  return (await readItems(contentIn(Buffer.from(text)), provider, files, new Slices())).nodes;
}

const asText = ({ protocol, ...rest }: ProxyConfig): string => JSON.stringify([protocol?.type, rest]);

/** Every node but that at `changed` is among `after` as it was. */
async function assertOthersStay(
  before: string,
  after: string,
  changed: number,
  about: string,
): Promise<void> {
  const left = new Set((await nodesIn(after)).map(asText));
  const lost = (await nodesIn(before)).filter((node, at) => at !== changed && !left.has(asText(node)));
  assert.deepEqual(
    lost.map(({ name }) => name),
    [],
    about,
  );
}

const asYaml = (nodes: readonly unknown[]): string =>
  `proxies:\n${nodes.map((node) => `- ${JSON.stringify(node)}\n`).join("")}`;

test("a changed node of a list in YAML costs itself", async () => {
  const random = randomFrom(0x2b);
  for (let turn = 0; turn < MUTATIONS; turn++) {
    const at = random(NODES.length);
    const node = mutated(NODES[at], random);
    await assertOthersStay(asYaml(NODES), asYaml(NODES.with(at, node)), at, JSON.stringify(node));
  }
});

/** A link that is cut, or has other characters at one place. */
function changedLink(link: string, random: (below: number) => number): string {
  const at = random(link.length);
  const rest = [link.slice(at + 1), "", "%zz"];
  return `${link.slice(0, at)}${pick(["", "\u0000", "@", "%", "é", "://"], random)}${pick(rest, random)}`;
}

for (const form of ["links", "base64"] as const)
  test(`a changed link costs itself: ${form}`, async () => {
    const written = (links: readonly string[]): string => {
      const text = links.join("\n");
      return form === "links" ? text : Buffer.from(text).toString("base64");
    };
    const random = randomFrom(0x2c);
    for (let turn = 0; turn < MUTATIONS; turn++) {
      const at = random(LINKS.length);
      const link = changedLink(LINKS[at] ?? "", random);
      await assertOthersStay(written(LINKS), written(LINKS.with(at, link)), at, link);
    }
  });
