/** `tls.custom-certifactes`: a private authority is believed by nodes, delay tests, DoH and downloads, and only where it is named. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import packets from "dns-packet";
import { ConfigError } from "#core/errors.ts";
import { DEFAULT_TRUST, openTrust } from "#net/dial/trust.ts";
import { makeCertificate } from "../support/certificate.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";
import { textFiles } from "../support/text-files.ts";
import { openWebOrigin } from "../support/web-origin.ts";

const authority = makeCertificate({ names: ["Private Authority"], ca: true });
const leaf = makeCertificate({ names: ["server.test", "127.0.0.1"], issuer: authority });

/** A list, DNS over HTTPS, and 204 for everything else. */
const openSecureServer = () =>
  openWebOrigin(
    (request, response) => {
      const url = new URL(request.url ?? "/", "https://x");
      if (url.pathname === "/list") return void response.end("payload:\n  - +.listed.test\n");
      if (url.pathname !== "/dns-query") return void response.writeHead(204).end();
      const { id, questions } = packets.decode(Buffer.from(url.searchParams.get("dns") ?? "", "base64url"));
      const answers = [{ type: "A", name: questions?.[0]?.name ?? "", ttl: 60, data: "192.0.2.7" } as const];
      response.setHeader("content-type", "application/dns-message");
      response.end(packets.encode({ type: "response", id: id ?? 0, questions: questions ?? [], answers }));
    },
    { tls: leaf },
  );

const configOf = (ports: readonly number[], server: number, roots: string) => `
external-controller: 127.0.0.1:${ports[0]}
${roots}
dns: { enable: true, ipv6: false, nameserver: ["https://127.0.0.1:${server}/dns-query"] }
listeners:
  - { name: in, type: trojan, listen: 127.0.0.1, port: ${ports[1]}, certificate: leaf.pem, private-key: leaf.key, users: [{ password: p }] }
proxies:
  - { name: far, type: trojan, server: 127.0.0.1, port: ${ports[1]}, sni: server.test, password: p }
rule-providers:
  list: { type: http, behavior: domain, proxy: DIRECT, url: "https://127.0.0.1:${server}/list", path: list.yaml }
rules: ["RULE-SET,list,REJECT", "MATCH,DIRECT"]
`;

interface Seen {
  readonly delay: number;
  readonly dns: number;
  readonly rules: number;
}

async function look(roots: string): Promise<Seen> {
  await using server = await openSecureServer();
  const ports = await freePorts(2);
  await using core = await startCore(configOf(ports, server.port, roots), {
    seed(home) {
      writeFileSync(join(home, "leaf.pem"), leaf.cert);
      writeFileSync(join(home, "leaf.key"), leaf.key);
      writeFileSync(join(home, "roots.pem"), `${makeCertificate().cert}${authority.cert}`);
    },
  });
  assert.ok(core.pid > 0);
  const ask = (path: string, method = "GET") => fetch(`http://127.0.0.1:${ports[0]}${path}`, { method });
  const url = encodeURIComponent(`https://127.0.0.1:${server.port}/generate_204`);
  const delay = await ask(`/proxies/far/delay?timeout=8000&url=${url}`);
  const dns = await ask("/dns/query?name=a.test&type=A");
  await ask("/providers/rules/list", "PUT");
  const { providers } = (await (await ask("/providers/rules")).json()) as {
    providers: { list: { ruleCount: number } };
  };
  return { delay: delay.status, dns: dns.status, rules: providers.list.ruleCount };
}

test("an authority in a file is believed everywhere", { timeout: 60_000 }, async () => {
  const seen = await look("tls: { custom-certifactes: [roots.pem] }");
  assert.deepEqual(seen, { delay: 200, dns: 200, rules: 1 });
});

test("without the key its certificate is refused", { timeout: 60_000 }, async () => {
  const { delay, dns, rules } = await look("");
  assert.ok(delay >= 500 && dns >= 500, `${delay}, ${dns}`);
  assert.equal(rules, 0);
});

test("what is no certificate is refused with its place; equal settings share a context", async () => {
  const where = "tls.custom-certifactes";
  await assert.rejects(openTrust([authority.cert, leaf.key], textFiles, where), (error) => {
    assert.ok(error instanceof ConfigError);
    return error.message.startsWith(`${where}[1]: `);
  });
  const broken = authority.cert.replace(/\n[A-Za-z0-9+/]{20}/, "\nAAAAAAAAAAAAAAAAAAAA");
  await assert.rejects(openTrust([broken], textFiles, where), ConfigError);
  assert.equal(await openTrust([], textFiles, where), DEFAULT_TRUST);
  const trust = await openTrust([authority.cert], textFiles, where);
  assert.equal(trust.context({ minVersion: "TLSv1.2" }), trust.context({ minVersion: "TLSv1.2" }));
  assert.notEqual(trust.context({ minVersion: "TLSv1.2" }), trust.context({ minVersion: "TLSv1.3" }));
});
