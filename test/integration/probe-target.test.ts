/** `weir probe-target`, run as a process, at sites of our own. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createSecureServer, type SecureServerOptions } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { makeCertificate } from "../support/certificate.ts";
import { freePorts } from "../support/free-ports.ts";

const weir = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "bin", "weir");
const authority = makeCertificate({ names: ["an authority"], ca: true });
const own = makeCertificate({ names: ["localhost"], issuer: authority });
/** Sent in front of the rest of a chain that is long enough for ML-DSA-65. */
const long = own.cert + authority.cert.repeat(12);
const folder = mkdtempSync(join(tmpdir(), "weir-target-"));
after(() => rmSync(folder, { recursive: true }));
const authorityFile = join(folder, "authority.pem");
writeFileSync(authorityFile, authority.cert);

interface Answer {
  readonly status?: number;
  readonly location?: string;
}

async function openSite(options: SecureServerOptions, { status = 200, location }: Answer = {}) {
  const server = createSecureServer(
    { key: own.key, cert: long, allowHTTP1: true, ...options },
    (_, response) => {
      response.writeHead(status, location === undefined ? {} : { location }).end("the site");
    },
  );
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})));
  server.on("sessionError", () => {}).on("tlsClientError", () => {});
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    target: `localhost:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(...args: readonly string[]): Promise<Outcome> {
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: authorityFile };
  return new Promise((resolve) => {
    const child = execFile(weir, ["probe-target", ...args], { env }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
  });
}

const report = z.array(
  z.object({
    host: z.string(),
    port: z.number(),
    usable: z.boolean(),
    faults: z.array(z.string()),
    doubts: z.array(z.string()),
    roundTripMs: z.number().optional(),
    handshakes: z
      .union([
        z.string(),
        z.object({
          alpn: z.string().nullable(),
          group: z.string(),
          takesX25519: z.boolean(),
          fitsMldsa65: z.boolean(),
        }),
      ])
      .optional(),
  }),
);

test("a good site, for people", async () => {
  await using site = await openSite({});
  const { code, stdout } = await run(site.target);
  assert.equal(code, 0, stdout);
  assert.match(stdout, new RegExp(`^1\\. ${site.target}: good\n`));
  assert.match(stdout, /round trip \d+\.\d ms, handshake \d+\.\d ms/);
  assert.match(stdout, /TLS 1\.3, h2, X25519MLKEM768 and X25519/);
  assert.match(stdout, /record of its certificates \d{4} bytes \(ML-DSA-65: yes\); behind the handshake \d/);
  assert.match(stdout, /first page 200\n$/);
});

test("a list is ranked, and each fault is said", { timeout: 60_000 }, async () => {
  const [closed] = (await freePorts(1)) as [number];
  await using good = await openSite({});
  await using small = await openSite({ cert: own.cert });
  await using elsewhere = await openSite({}, { status: 301, location: "https://www.site.test/" });
  await using missing = await openSite({}, { status: 404 });
  await using older = await openSite({ maxVersion: "TLSv1.2" });
  await using curve = await openSite({ ecdhCurve: "P-384:P-256" });
  await using foreign = await openSite(makeCertificate({ names: ["other.test"] }));
  const file = join(folder, "list");
  const sites = [curve, older, foreign, missing, elsewhere, small, good];
  writeFileSync(
    file,
    `# sites\n${sites.map(({ target }) => target).join("\n")}\n\nlocalhost:${closed} # closed\n`,
  );
  const { code, stdout } = await run("-f", file, "-json");
  assert.equal(code, 0);
  const found = report.parse(JSON.parse(stdout));
  const of = (target: string) =>
    found.find(({ host, port }) => `${host}:${port}` === target) ?? assert.fail();
  assert.equal(found.length, 8);
  assert.equal(`${found[0]?.host}:${found[0]?.port}`, good.target);
  assert.deepEqual(
    found.map(({ usable }) => usable),
    [true, true, true, true, false, false, false, false],
  );
  assert.deepEqual([of(good.target).faults, of(good.target).doubts], [[], []]);
  assert.match(of(small.target).doubts.join(), /no room for a signature of ML-DSA-65/);
  assert.match(
    of(elsewhere.target).doubts.join(),
    /to https:\/\/www\.site\.test\/: that site would be right/,
  );
  assert.match(of(missing.target).doubts.join(), /answers 404/);
  assert.match(of(older.target).faults.join(), /no handshake of TLS 1\.3/);
  assert.match(of(curve.target).faults.join(), /does not choose X25519/);
  assert.match(of(foreign.target).faults.join(), /a browser would not show it/);
  assert.match(of(`localhost:${closed}`).faults.join(), /ECONNREFUSED/);
});

test("no site of the list can be dest: 1", async () => {
  await using small = await openSite({ cert: own.cert });
  const { code, stdout } = await run(small.target, "-mldsa65");
  assert.equal(code, 1);
  assert.match(
    stdout,
    /cannot be dest\n[^]*fault: its certificates fill a record of \d+ bytes, which has no room/,
  );
});

test("words that are no site: 2, and what is expected", async () => {
  for (const args of [[], ["a:b:c"], ["site.test:0"], ["localhost", "-timeout", "soon"]]) {
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [2, ""], stderr);
    assert.match(stderr, /expected/);
  }
});
