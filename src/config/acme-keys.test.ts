/** What a configuration may ask of ACME, and what is said of the rest; nothing is contacted or written. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openParseEnv } from "#cli/parse-env.ts";
import { SILENT } from "#core/log.ts";
import { parseConfig } from "./parse.ts";

const env = openParseEnv({ home: "/nowhere", geodataMode: false, source: null }, SILENT);
const parse = (text: string) => parseConfig(text, env);
const errorsOf = (text: string): readonly string[] =>
  (parse(text).errors ?? []).map(({ path, message }) => `${path}: ${message}`);

const ACME = "acme: { agree-tos: true, directory: staging }\n";
const listener = (more: string): string =>
  `listeners: [{ name: edge, type: trojan, port: 443, users: [{ username: a, password: p }], ${more} }]\n`;

test("names give the listener and tls a file of their own, by directory and names", () => {
  const fileOf = (text: string): string => {
    const { config, errors } = parse(text);
    assert.deepEqual(errors, undefined);
    const { certificate, "private-key": key }: { certificate?: string; "private-key"?: string } =
      config?.listeners[0]?.options ?? {};
    assert.equal(certificate, key);
    return certificate ?? "";
  };
  const one = fileOf(ACME + listener("acme: [Edge.Example.]"));
  assert.match(one, /^acme\/acme-staging-v02\.api\.letsencrypt\.org-[0-9a-f]{8}\/edge\.example\.pem$/);
  assert.equal(fileOf(ACME + listener("acme: edge.example")), one, "a single name is a list of one");
  const two = fileOf(ACME + listener("acme: [edge.example, b.example]"));
  assert.match(two, /\/edge\.example\+1-[0-9a-f]{8}\.pem$/);
  assert.equal(fileOf(ACME + listener("acme: [edge.example, b.example]")), two);
  assert.notEqual(fileOf("acme: { agree-tos: true }\n" + listener("acme: [edge.example]")), one);
  assert.match(fileOf(ACME + listener("acme: [bücher.example]")), /\/xn--bcher-kva\.example\.pem$/);
  const { config } = parse(`${ACME}tls: { acme: [panel.example] }\n`);
  assert.match(config?.tls.privateKey ?? "", /\/panel\.example\.pem$/);
  assert.equal(config?.tls.certificate, config?.tls.privateKey);
});

const FAULTS: readonly (readonly [text: string, path: string, said: RegExp])[] = [
  [
    listener("acme: [edge.example]"),
    "listeners[0].acme",
    /needs the top-level block acme, with agree-tos: true/,
  ],
  [
    ACME + listener("acme: [a.example], certificate: c.pem"),
    "listeners[0].acme",
    /acme and certificate exclude/,
  ],
  [`${ACME}tls: { acme: [a.example], private-key: k.pem }\n`, "tls.acme", /acme and private-key exclude/],
  [ACME + listener('acme: ["*.a.example"]'), "listeners[0].acme[0]", /wildcards need DNS-01/],
  [ACME + listener("acme: [192.0.2.1]"), "listeners[0].acme[0]", /expected a host name such as example\.com/],
  [ACME + listener('acme: ["../../etc/x"]'), "listeners[0].acme[0]", /expected a host name/],
  ["acme: {}\n", "acme.agree-tos", /is required/],
  ["acme: { agree-tos: false }\n", "acme.agree-tos", /must be true/],
  ["acme: { agree-tos: true, directory: http://a.example/dir }\n", "acme.directory", /staging or the https:/],
  ["acme: { agree-tos: true, email: no-address }\n", "acme.email", /expected one address/],
  [
    "acme: { agree-tos: true, challenge: dns-01 }\n",
    "acme.challenge",
    /expected one of http-01, tls-alpn-01/,
  ],
  ["acme: { agree-tos: true, listen: 80 }\n", "acme.listen", /expected host:port such as :80/],
  ["acme: { agree-tos: true, proxy: Oslo }\n", "acme.proxy", /Oslo not found/],
  ["acme: { agree-tos: true, folder: /etc }\n", "acme.folder", /is not inside a safe path/],
];

for (const [text, path, said] of FAULTS)
  test(`${path}: ${said.source}`, () => {
    const errors = errorsOf(text);
    const [error = ""] = errors;
    assert.equal(errors.length, 1, errors.join("\n"));
    assert.ok(error.startsWith(`${path}: `), error);
    assert.match(error, said);
  });

test("a REALITY listener cannot have one, and says why", () => {
  const reality =
    'reality-config: { dest: "a.example:443", server-names: [a.example], private-key: "iLQF6MZAOQdVEVgWZC6ZxDXNCCVGE-PmXsFhFpmnpWg" }';
  const text = `${ACME}listeners: [{ name: edge, type: vless, port: 443, users: [], acme: [a.example], ${reality} }]\n`;
  assert.match(
    errorsOf(text).join("\n"),
    /listeners\[0\]\.acme: .*acme and reality-config exclude each other/,
  );
});

test("an error of the block is said once, not by every listener that asks", () => {
  assert.equal(errorsOf("acme: { agree-tos: false }\n" + listener("acme: [a.example]")).length, 1);
});
