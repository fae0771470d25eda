/** `examples/fleet`: what its compose file starts, started here without containers. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { example, withPlaces } from "../support/examples.ts";
import { missing } from "../support/peer.ts";
import { noPostgres, startPostgres } from "../support/postgres.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

interface Service {
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly volumes?: readonly string[];
}

const folder = fileURLToPath(new URL("../../examples/fleet/", import.meta.url));
const file = (name: string) => readFileSync(join(folder, name), "utf8");
const compose = parse(file("compose.yaml")) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const NODES = ["fra-1", "ams-1"] as const;
const SECRET = "one secret of all nodes, of 32 bytes or more";

test("the compose file names services, volumes and files that there are", () => {
  for (const [name, { depends_on = {}, volumes = [], entrypoint = [], command = [] }] of Object.entries(
    compose.services,
  )) {
    for (const other of Object.keys(depends_on)) assert.ok(other in compose.services, `${name}: ${other}`);
    for (const [source = ""] of volumes.map((text) => text.split(":")))
      if (source.startsWith("./")) file(source);
      else assert.ok(source === "." || source in compose.volumes, `${name}: ${source}`);
    for (const word of [...entrypoint, ...command]) if (word.startsWith("/fleet/")) file(basename(word));
  }
});

test("the authority of certificates.sh stands for its certificate", { skip: missing("openssl") }, (t) => {
  const home = mkdtempSync(join(tmpdir(), "weir-certificates-"));
  t.after(() => rmSync(home, { recursive: true }));
  const [, , , host = ""] = compose.services["certificates"]?.entrypoint ?? [];
  const make = () => execFileSync("sh", [join(folder, "certificates.sh"), home, host], { stdio: "ignore" });
  make();
  const first = readFileSync(join(home, "server.pem"), "utf8");
  make();
  assert.equal(readFileSync(join(home, "server.pem"), "utf8"), first, "what is there stays");
  const args = [
    "verify",
    "-CAfile",
    join(home, "ca.pem"),
    "-verify_hostname",
    host,
    join(home, "server.pem"),
  ];
  assert.match(execFileSync("openssl", args, { encoding: "utf8" }), /OK/);
});

test("from an empty database to two nodes with the same users", { skip: noPostgres ?? false }, async (t) => {
  await using server = await startPostgres();
  server.sql("CREATE DATABASE weir");
  server.sql(file("logins.sql"));
  const home = mkdtempSync(join(tmpdir(), "weir-fleet-example-"));
  t.after(() => rmSync(home, { recursive: true }));
  const tls = join(home, "tls");
  mkdirSync(tls);
  copyFileSync(server.caFile, join(tls, "ca.pem"));
  /** The service's own database and login, with this test's place and, of the owner, its password. */
  const dsnOf = (service: string): string => {
    const { WEIR_FLEET_DSN: dsn = "" } = compose.services[service]?.environment ?? {};
    const { username, password, pathname } = new URL(dsn);
    return service === "schema"
      ? server.dsn(username, undefined, pathname.slice(1))
      : server.dsn(username, password, pathname.slice(1));
  };
  const configOf = (name: string): string =>
    withPlaces(example(`fleet/${name}`), {
      "/tls/": `${tls}/`,
      "listen: 0.0.0.0": "listen: 127.0.0.1",
      "port: 8443": "port: 0",
      "127.0.0.1:9093": "127.0.0.1:0",
    });
  const configFile = join(home, "fra-1.yaml");
  writeFileSync(configFile, configOf("fra-1"));
  symlinkSync(fileURLToPath(new URL("../../bin/weir", import.meta.url)), join(home, "weir"));
  const env = { SAFE_PATHS: tls, WEIR_FLEET_DSN: dsnOf("schema") };
  execFileSync("sh", [join(folder, "schema.sh"), configFile], {
    env: { ...process.env, ...env, PATH: `${home}:${process.env["PATH"]}` },
    stdio: ["ignore", "ignore", "pipe"],
  });
  await using stack = new AsyncDisposableStack();
  const bases: string[] = [];
  for (const name of NODES) {
    const core = stack.use(
      await startCore(configOf(name), { env: { SAFE_PATHS: tls, WEIR_FLEET_DSN: dsnOf(name) } }),
    );
    bases.push(`http://127.0.0.1:${await core.controllerPort()}`);
  }
  const [first = "", second = ""] = bases;
  const ask = async <T>(base: string, path: string, body?: object): Promise<T> => {
    const answer = await fetch(base + path, {
      headers: { authorization: `Bearer ${SECRET}` },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
    return (await answer.json()) as T;
  };
  const names = async (base: string) =>
    (await ask<{ nodes: { name: string }[] }>(base, "/api/svc/fleet")).nodes.map(({ name }) => name);
  for (const base of bases)
    await until("both nodes", async () => `${await names(base)}` === "ams-1,fra-1", { withinMs: 60_000 });
  const revision = async () =>
    (await ask<{ inbounds: { revision: number }[] }>(first, "/api/admin/inbounds")).inbounds[0]?.revision;
  await ask(first, "/api/admin/users", { inbound: "edge", name: "alice", revision: await revision() });
  const users = async () =>
    (await ask<{ users: { name: string }[] }>(second, "/api/admin/users")).users.map(({ name }) => name);
  await until("alice on the other node", async () => `${await users()}` === "alice");
});
