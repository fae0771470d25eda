/** Certificates by ACME: ordered of a real authority, validated over sockets, renewed while connections go on. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { example, withPlaces } from "../support/examples.ts";
import { freePorts } from "../support/free-ports.ts";
import { missing } from "../support/peer.ts";
import { noPebble, startPebble, type Pebble } from "../support/pebble.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";
import { run, WEIR } from "../support/wizard-world.ts";

const NAME = "edge.example";

interface Layout {
  readonly challenge: "http-01" | "tls-alpn-01";
  readonly port: number;
  readonly more?: string;
}

function configOf(pebble: Pebble, { challenge, port, more = "" }: Layout): string {
  return `
acme:
  email: operator@example.org
  agree-tos: true
  directory: ${pebble.directory}
  ca: directory.pem
  challenge: ${challenge}
  listen: 127.0.0.1:${pebble.httpPort}
listeners:
  - { name: edge, type: http, listen: 127.0.0.1, port: ${port}, acme: [${NAME}] }
${more}
rules: ["MATCH,DIRECT"]
`;
}

const seedOf = (pebble: Pebble) => (home: string) => writeFileSync(join(home, "directory.pem"), pebble.ca);

async function dial(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, servername: NAME, ...options });
  await once(socket, "secureConnect");
  return socket.on("error", () => {});
}

/** The serial number of what a client that trusts the authority is shown; null: it is shown something else. */
async function serialAt(port: number, ca: string): Promise<string | null> {
  try {
    const socket = await dial(port, { ca });
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  } catch {
    return null;
  }
}

/** Asks the proxy for itself: an answer of its own, whatever it is, shows that the connection is served. */
async function answersOn(socket: TLSSocket): Promise<void> {
  const answered = once(socket, "data");
  socket.write("GET / HTTP/1.1\r\nhost: edge.example\r\n\r\n");
  const [bytes] = (await answered) as [Buffer];
  assert.match(bytes.toString("latin1"), /^HTTP\/1\.1 /);
}

const ISSUED = /acme: certificate for edge\.example: valid until/;

for (const challenge of ["http-01", "tls-alpn-01"] as const)
  for (const relay of ["auto", "portable"])
    test(
      `${challenge}, relay: ${relay}: a certificate comes, and the listener shows it`,
      {
        skip: noPebble,
      },
      async () => {
        await using pebble = await startPebble();
        const port = pebble.tlsPort;
        const config = configOf(pebble, { challenge, port, more: `relay: ${relay}` });
        await using core = await startCore(config, { seed: seedOf(pebble) });
        const early = await dial(port, { rejectUnauthorized: false });
        await core.shows(ISSUED);
        const ca = await pebble.root();
        await until("its certificate", async () => (await serialAt(port, ca)) !== null);
        await answersOn(early);
        early.destroy();
        const [file = ""] = globSync("acme/*/edge.example.pem", { cwd: core.home });
        for (const one of [file, join(file, "../account")])
          assert.equal(statSync(join(core.home, one)).mode & 0o777, 0o600);
        const before = core.output().length;
        await core.reload();
        await until("nothing more is asked for", async () => (await serialAt(port, ca)) !== null);
        assert.equal(pebble.orders(), 1);
        assert.doesNotMatch(core.output().slice(before), /ordering/);
        await assert.rejects(dial(pebble.httpPort, {}), /ECONNREFUSED/, "nothing listens behind the order");
      },
    );

test("a certificate is renewed with connections open, by one account", { skip: noPebble }, async () => {
  await using pebble = await startPebble({ validForSeconds: 12 });
  const port = pebble.tlsPort;
  const config = configOf(pebble, { challenge: "tls-alpn-01", port });
  await using core = await startCore(config, { seed: seedOf(pebble) });
  await core.shows(ISSUED);
  const ca = await pebble.root();
  await until("its certificate", async () => (await serialAt(port, ca)) !== null);
  const first = await serialAt(port, ca);
  const open = await dial(port, { ca });
  await until(
    "another one",
    async () => {
      const serial = await serialAt(port, ca);
      assert.notEqual(serial, null, "between two certificates there is always one that is good");
      return serial !== first;
    },
    { everyMs: 100, withinMs: 30_000 },
  );
  await answersOn(open);
  open.destroy();
  assert.equal(pebble.accounts(), 1);
});

test(
  "a certificate that a full disk does not take is kept until it does, and no other one is ordered",
  { skip: noPebble || missing("prlimit") },
  async () => {
    await using pebble = await startPebble({ validForSeconds: 12 });
    const port = pebble.tlsPort;
    const config = configOf(pebble, { challenge: "tls-alpn-01", port });
    await using core = await startCore(config, { seed: seedOf(pebble) });
    await core.shows(ISSUED);
    const limit = (most: string) => spawnSync("prlimit", [`--pid=${core.pid}`, `--fsize=${most}:`]);
    limit("1000"); // the record of attempts is smaller, a certificate is not
    await core.shows(/no certificate for edge\.example .*EFBIG/);
    const ordered = pebble.orders();
    limit("unlimited");
    const [attempts = ""] = globSync("acme/*/attempts", { cwd: core.home });
    rmSync(join(core.home, attempts)); // not to wait for five minutes
    const printed = core.output().length;
    await core.reload(config.replace("operator@", "another@"));
    await core.shows(ISSUED, printed);
    assert.equal(pebble.orders(), ordered);
  },
);

test("a refusal is remembered over restarts, and the listener serves", { skip: noPebble }, async () => {
  await using pebble = await startPebble({ blocked: [NAME] });
  const [port = 0] = await freePorts(1);
  const config = configOf(pebble, { challenge: "http-01", port });
  await using core = await startCore(config, { seed: seedOf(pebble) });
  await core.shows(/acme: no certificate for edge\.example \(listener edge\): .*tried again at/);
  (await dial(port, { rejectUnauthorized: false })).destroy();
  const kept = globSync("acme/**/*", { cwd: core.home }).filter((path) =>
    statSync(join(core.home, path)).isFile(),
  );
  const files = kept.map((path) => [path, readFileSync(join(core.home, path), "utf8")] as const);
  await core.stop();
  const requests = pebble.requests();
  assert.ok(requests > 0);
  await using again = await startCore(config, {
    seed(home) {
      seedOf(pebble)(home);
      for (const [path, text] of files) {
        mkdirSync(dirname(join(home, path)), { recursive: true });
        writeFileSync(join(home, path), text);
      }
    },
  });
  await again.reload();
  assert.equal(pebble.requests(), requests);
  assert.doesNotMatch(again.output(), /ordering/);
});

test("a name that leads elsewhere is a failure that says so", { skip: noPebble }, async () => {
  await using pebble = await startPebble();
  const [port = 0, elsewhere = 0] = await freePorts(2);
  const config = configOf({ ...pebble, httpPort: elsewhere }, { challenge: "http-01", port });
  await using core = await startCore(config, { seed: seedOf(pebble) });
  await core.shows(/edge\.example was not validated by http-01: .*connection refused/i);
});

test("the Controller's certificate comes the same way", { skip: noPebble }, async () => {
  await using pebble = await startPebble();
  const [port = 0, controller = 0] = await freePorts(2);
  const more = `
external-controller-tls: 127.0.0.1:${controller}
secret: a-secret-of-the-test
tls: { acme: [panel.example, ${NAME}] }`;
  await using core = await startCore(configOf(pebble, { challenge: "http-01", port, more }), {
    seed: seedOf(pebble),
  });
  await core.shows(/acme: certificate for panel\.example, edge\.example: valid until/);
  await core.shows(ISSUED);
  const ca = await pebble.root();
  for (const servername of ["panel.example", NAME])
    await until(servername, async () => {
      const socket = await dial(controller, { ca, servername }).catch(() => null);
      socket?.destroy();
      return socket !== null;
    });
});

test("the example, as it stands but for the places of this machine", { skip: noPebble }, async () => {
  await using pebble = await startPebble();
  const [port = 0] = await freePorts(1);
  const text = withPlaces(example("acme/server"), {
    "directory: staging": `directory: ${pebble.directory}\n  ca: directory.pem\n  listen: 127.0.0.1:${pebble.httpPort}`,
    "listen: 0.0.0.0": "listen: 127.0.0.1",
    "port: 443": `port: ${port}`,
  });
  await using core = await startCore(text, { seed: seedOf(pebble) });
  await core.shows(/acme: certificate for edge\.example\.com: valid until/);
});

test("a file that weir has not written is left alone", { skip: noPebble }, async () => {
  await using pebble = await startPebble();
  const [port = 0] = await freePorts(1);
  const config = configOf(pebble, { challenge: "http-01", port });
  await using first = await startCore(config, { seed: seedOf(pebble) });
  const [file = ""] = globSync("acme/*/edge.example.pem", { cwd: first.home });
  await first.stop();
  const seed = (home: string): void => {
    seedOf(pebble)(home);
    mkdirSync(dirname(join(home, file)), { recursive: true });
    writeFileSync(join(home, file), "mine");
  };
  await using core = await startCore(config, { seed });
  await core.shows(/edge\.example\.pem is no file that weir has written for ACME/);
  assert.equal(readFileSync(join(core.home, file), "utf8"), "mine");
});

test(
  "an authority that cannot be reached, and one that is not trusted, are named with the reason",
  {
    skip: noPebble,
  },
  async () => {
    await using pebble = await startPebble();
    const [port = 0, closed = 0] = await freePorts(2);
    const layout = { challenge: "http-01", port } as const;
    const far = { ...pebble, directory: `https://127.0.0.1:${closed}/dir` };
    await using core = await startCore(configOf(far, layout), { seed: seedOf(pebble) });
    await core.shows(
      new RegExp(`no certificate for edge\\.example .*127\\.0\\.0\\.1:${closed}: .*refused`, "i"),
    );
    await core.reload(configOf(pebble, layout).replace("  ca: directory.pem\n", ""));
    await core.shows(/no certificate for edge\.example .*unable to verify the first certificate/);
  },
);

test("-t contacts nothing and writes nothing; the doctor says what is there", async () => {
  const [port = 0, closed = 0] = await freePorts(2);
  const home = mkdtempSync(join(tmpdir(), "weir-acme-"));
  using undo = new DisposableStack();
  undo.defer(() => rmSync(home, { recursive: true, force: true }));
  writeFileSync(
    join(home, "config.yaml"),
    `acme: { agree-tos: true, directory: "https://127.0.0.1:${closed}/dir" }\nlisteners: [{ name: edge, type: http, listen: 127.0.0.1, port: ${port}, acme: [${NAME}] }]\nrules: ["MATCH,DIRECT"]\n`,
  );
  const { stdout } = await run(WEIR, ["-d", home, "-t"]);
  assert.match(stdout, /test is successful/);
  assert.doesNotMatch(stdout, /level=(warning|error)/);
  assert.deepEqual(readdirSync(home), ["config.yaml"]);
  const doctor = await run(WEIR, ["doctor", "-d", home]).catch((error: { stdout: string }) => error);
  assert.match(doctor.stdout, /certificate of listener edge.*it is ordered by ACME when weir runs/);
});
