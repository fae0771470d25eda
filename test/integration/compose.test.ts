/** The compose files of `deploy/container/` fit the configurations beside them, and these start. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { makeCertificate } from "../support/certificate.ts";
import { withPlaces } from "../support/examples.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";

const folder = join(dirname(dirname(import.meta.dirname)), "deploy", "container");
const read = (file: string) => readFileSync(join(folder, file), "utf8");

/** The configuration that a compose file mounts, and the ports of the container that it publishes. */
function mountedBy(file: string): { readonly text: string; readonly ports: readonly number[] } {
  const { services } = parse(read(file)) as {
    services: { weir: { image: string; volumes: readonly string[]; ports: readonly string[] } };
  };
  const { image, volumes, ports } = services.weir;
  assert.equal(image, "weir");
  const mount = volumes.find((volume) => volume.endsWith(":/etc/weir/config.yaml:ro"))?.split(":")[0] ?? "";
  assert.ok(existsSync(join(folder, mount)), mount);
  assert.ok(volumes.includes("state:/var/lib/weir"));
  const inside = ports.map((port) => Number(/:(\d+)\/(?:tcp|udp)$/.exec(port)?.[1]));
  return { text: read(mount), ports: [...new Set(inside)] };
}

test("a single weir: the published port is the one that listens, and the health check has a Controller", async () => {
  const { text, ports } = mountedBy("compose.yaml");
  assert.deepEqual(ports, [7890]);
  const [port] = (await freePorts(1)) as [number];
  await using core = await startCore(withPlaces(text, { "7890": String(port) }));
  assert.match(core.output(), new RegExp(`listening at \\S+:${port}\\b`));
  assert.ok(existsSync(join(core.home, "controller.sock")));
});

test("a server with users starts with a certificate beside it, and publishes its ports", async (t) => {
  const tls = mkdtempSync(join(tmpdir(), "weir-compose-"));
  t.after(() => rmSync(tls, { recursive: true }));
  const { cert, key } = makeCertificate();
  writeFileSync(join(tls, "server.pem"), cert);
  writeFileSync(join(tls, "server.key"), key);
  const { text, ports } = mountedBy("compose-users.yaml");
  assert.deepEqual(ports, [8443, 9090]);
  const places = { "8443": "0", "0.0.0.0:9090": "127.0.0.1:0", "/etc/weir/tls": tls };
  await using core = await startCore(withPlaces(text, places), { env: { ...process.env, SAFE_PATHS: tls } });
  assert.ok((await core.port("edge")) > 0);
  assert.ok(existsSync(join(core.home, "controller.sock")));
  assert.ok(existsSync(join(core.home, "users.db")));
});
