/** The whole program under clients, signals and surroundings that behave badly. Every case names the fault it guards against. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Ip } from "#core/session.ts";
import { parseIp } from "#net/address/ip.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openRawClient, type RawClient } from "../support/raw-client.ts";
import { startCore } from "../support/start-core.ts";

const program = join(import.meta.dirname, "..", "..", "bin", "weir");

function configText([mixed, controller]: readonly number[], more = ""): string {
  return `mixed-port: ${mixed}\nexternal-controller: 127.0.0.1:${controller}\n${more}rules: ["MATCH,DIRECT"]\n`;
}

const PHASES: Readonly<Record<string, (client: RawClient) => Promise<unknown>>> = {
  "says nothing": async () => {},
  "stops in a greeting": async (client) => client.send(Buffer.from([5, 2])),
  "stops in a request": async (client) => client.send("GET http://127.0.0.1/ HTTP/1.1\r\nHo"),
  "holds a UDP association": async (client) => {
    client.send(Buffer.from([5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]));
    return client.read(12);
  },
};

test("SIGTERM: clients that are in no session do not hold the program up", async () => {
  const ports = await freePorts(2);
  await using core = await startCore(configText(ports));
  const clients = await Promise.all(
    Object.values(PHASES).map(async (phase) => {
      const client = await openRawClient(ports[0] as number);
      await phase(client);
      return client;
    }),
  );
  await delay(50); // the half requests have to arrive
  const startedMs = performance.now();
  assert.equal(await core.stop("SIGTERM"), 0);
  assert.ok(performance.now() - startedMs < 7_000, "it waited for a handshake's deadline");
  assert.doesNotMatch(core.output(), /not everything ended/);
  for (const client of clients) client[Symbol.dispose]();
});

test("SIGHUP behind SIGTERM does not bring the listeners back", async () => {
  const ports = await freePorts(2);
  await using core = await startCore(configText(ports));
  using client = await openRawClient(ports[0] as number);
  client.send(`CONNECT 127.0.0.1:${ports[1]} HTTP/1.1\r\n\r\n`); // a session, so that the end takes its time
  await client.until("\r\n\r\n");
  process.kill(core.pid, "SIGTERM");
  await core.shows(/shutting down/);
  process.kill(core.pid, "SIGHUP");
  assert.equal(await core.exited, 0);
  assert.match(core.output(), /reload failed.*shutting down/);
});

/** A FIFO that is full, as its reader has stopped; the descriptor is open for both directions. */
function fullPipe(folder: string): number {
  const path = join(folder, "stuck");
  execFileSync("mkfifo", [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  try {
    for (const block = Buffer.alloc(4096); ;) writeSync(fd, block);
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "EAGAIN");
  }
  return openSync(path, constants.O_RDWR); // a mode of its own: blocking, as shells make it
}

for (const kind of ["pipe", "socket"] as const)
  test(`a reader of stdout that has stopped reading (${kind}) holds up neither the program nor its end`, async () => {
    const [mixed] = (await freePorts(1)) as [number];
    const home = mkdtempSync(join(tmpdir(), "weir-chaos-"));
    const config = Buffer.from(`mixed-port: ${mixed}\nlog-level: debug\nrules: ["MATCH,REJECT"]\n`);
    // The runtime's own pipe to a child is a socket pair; it is not read here.
    const stdout = kind === "pipe" ? fullPipe(home) : "pipe";
    const child = spawn(program, ["-d", home, "-config", config.toString("base64")], {
      stdio: ["ignore", stdout, "inherit"],
    });
    const exited = once(child, "exit");
    try {
      await eventually(() => openRawClient(mixed).then((client) => client[Symbol.dispose]()));
      for (let round = 0; round < (kind === "pipe" ? 1 : 1500); round++) {
        using client = await openRawClient(mixed);
        client.send(
          `CONNECT ${"x".repeat(60)}.${"y".repeat(60)}.${"z".repeat(60)}.invalid:1 HTTP/1.1\r\n\r\n`,
        );
        await client.until("403 Forbidden");
      }
      const startedMs = performance.now();
      child.kill("SIGTERM");
      assert.deepEqual(await exited, [0, null]);
      assert.ok(performance.now() - startedMs < 7_000, "it waited for its reader");
    } finally {
      child.kill("SIGKILL");
      await exited;
      if (typeof stdout === "number") closeSync(stdout);
      rmSync(home, { recursive: true, force: true });
    }
  });

/** Sends a change to the Controller and answers with the status. */
async function change(port: number, method: "PATCH" | "PUT", body: object): Promise<number> {
  const url = `http://127.0.0.1:${port}/configs?force=true`;
  const answer = await fetch(url, { method, body: JSON.stringify(body) });
  await answer.arrayBuffer();
  return answer.status;
}

async function reachable(port: number, host: string): Promise<boolean> {
  return openRawClient(port, host).then(
    (client) => {
      client[Symbol.dispose]();
      return true;
    },
    () => false,
  );
}

test("allow-lan and dns.listen move from loopback to every address and back on the same port", async () => {
  const ports = await freePorts(3);
  const [mixed, controller, dns] = ports as [number, number, number];
  const withDns = (listen: string) =>
    configText(ports, `dns: { enable: true, listen: "${listen}", nameserver: [127.0.0.1] }\n`);
  await using _core = await startCore(withDns(`127.0.0.1:${dns}`));
  using client = await openRawClient(mixed);
  client.send(`CONNECT 127.0.0.1:${controller} HTTP/1.1\r\n\r\n`);
  await client.until("\r\n\r\n");
  assert.equal(await reachable(mixed, "::1"), false);
  assert.equal(await change(controller, "PATCH", { "allow-lan": true }), 204);
  assert.equal(await reachable(mixed, "::1"), true);
  assert.equal(await change(controller, "PATCH", { "bind-address": "127.0.0.1" }), 204);
  assert.equal(await change(controller, "PATCH", { "bind-address": "*" }), 204);
  assert.equal(await change(controller, "PATCH", { "allow-lan": false }), 204);
  await eventually(async () => assert.equal(await reachable(mixed, "::1"), false)); // the old socket closes behind the answer
  assert.equal(await reachable(mixed, "127.0.0.1"), true);
  assert.equal(await change(controller, "PUT", { payload: withDns(`:${dns}`) }), 204);
  assert.equal(await change(controller, "PUT", { payload: withDns(`127.0.0.1:${dns}`) }), 204);
  client.send(`GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  await client.until("version"); // the tunnel lives through all of it
});

test("two listeners of one configuration never share a port in silence", async () => {
  const ports = await freePorts(3);
  const [mixed, controller, free] = ports as [number, number, number];
  await using core = await startCore(configText(ports, `socks-port: ${mixed}\n`));
  assert.match(
    core.output(),
    /level=error msg="listener DEFAULT-\w+: cannot listen on tcp .*another listener/,
  );
  assert.equal(await change(controller, "PATCH", { "socks-port": 0 }), 204);
  assert.equal(await change(controller, "PATCH", { port: mixed }), 500);
  const view = (await (await fetch(`http://127.0.0.1:${controller}/configs`)).json()) as Record<
    string,
    number
  >;
  assert.deepEqual([view["mixed-port"], view["port"]], [mixed, 0], "a refused change changed something");
  assert.equal(await change(controller, "PATCH", { port: free }), 204);
});

test("a configuration that cannot be read at all is the caller's mistake, and changes nothing", async () => {
  const ports = await freePorts(2);
  const [mixed, controller] = ports as [number, number];
  await using core = await startCore(configText(ports));
  for (const text of ["", "  \n", `x: ${"a".repeat(17 << 20)}\n`]) {
    core.write(text);
    assert.equal(await change(controller, "PUT", {}), 400);
  }
  assert.equal(await change(controller, "PUT", { path: join(core.home, "missing.yaml") }), 400);
  rmSync(join(core.home, "config.yaml"));
  assert.equal(await change(controller, "PUT", {}), 400);
  assert.equal(await reachable(mixed, "127.0.0.1"), true);
});

test("SIGHUP to a Controller port in use keeps the present Controller reachable", async () => {
  const ports = await freePorts(2);
  const [mixed, controller] = ports as [number, number];
  await using origin = await openTcpOrigin(echo);
  await using core = await startCore(configText(ports));
  const before = core.output().length;
  await core.reload(configText([mixed, origin.port]));
  await core.shows(/goes on with the earlier settings/, before);
  assert.equal(await change(controller, "PATCH", { mode: "direct" }), 204);
});

test("delay tests of a server that accepts and is silent leave no socket", async () => {
  const ports = await freePorts(2);
  await using silent = await openTcpOrigin((socket) => void socket.resume());
  await using core = await startCore(configText(ports));
  const rounds = 20;
  const url = encodeURIComponent(`https://127.0.0.1:${silent.port}/`);
  const before = descriptorsOf(core.pid);
  for (let round = 0; round < rounds; round++) {
    const path = `/proxies/DIRECT/delay?timeout=20&url=${url}`;
    assert.equal((await fetch(`http://127.0.0.1:${ports[1]}${path}`)).status, 504);
  }
  await eventually(async () => assert.ok(descriptorsOf(core.pid) < before + rounds / 2));
});

test("tunnels of both networks carry, to an address and to one in brackets", async () => {
  const ports = await freePorts(4);
  const [, , first, second] = ports as [number, number, number, number];
  await using origin = await openTcpOrigin(echo);
  await using origin6 = await openTcpOrigin(echo, parseIp("::1") as Ip);
  await using datagrams = await openUdpEcho();
  const tunnels = [
    `tcp,127.0.0.1:${first},127.0.0.1:${origin.port}`,
    `udp,127.0.0.1:${first},127.0.0.1:${datagrams.port}`,
    `tcp,127.0.0.1:${second},[::1]:${origin6.port},DIRECT`,
  ];
  await using core = await startCore(configText(ports, `tunnels: ${JSON.stringify(tunnels)}\n`));
  for (const port of [first, second]) {
    using client = await openRawClient(port);
    client.send("hello");
    assert.equal((await client.read(5)).toString(), "hello");
  }
  const socket = createSocket("udp4");
  const answer = once(socket, "message");
  socket.send("hello", first, "127.0.0.1");
  assert.equal(String((await answer)[0]), "hello");
  socket.close();
  assert.doesNotMatch(core.output(), /a fault of weir/);
});

test("a generation that only finishes a session stops its delay tests", async () => {
  const ports = await freePorts(2);
  const [mixed, controller] = ports as [number, number];
  let probes = 0;
  await using page = await openTcpOrigin((socket) => {
    probes++;
    socket.end("HTTP/1.1 204 No Content\r\n\r\n");
  });
  await using origin = await openTcpOrigin(echo);
  const group = `{ name: G, type: url-test, proxies: [DIRECT], url: "http://127.0.0.1:${page.port}/", interval: 1, lazy: false }`;
  await using _core = await startCore(configText(ports, `proxy-groups: [${group}]\n`));
  using client = await openRawClient(mixed);
  client.send(`CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\n\r\n`);
  await client.until("\r\n\r\n");
  await eventually(async () => assert.ok(probes >= 2));
  assert.equal(await change(controller, "PUT", { payload: configText(ports) }), 204);
  await delay(200); // one may have been under way
  const before = probes;
  await delay(2_500);
  assert.equal(probes, before);
  client.send("still here");
  await client.until("still here");
});

test("a fault that was not caught is logged and ends nothing", async () => {
  const ports = await freePorts(2);
  const faults = `setTimeout(() => { Promise.reject(new Error("lost promise")); throw new Error("lost throw") }, 2500)`;
  await using core = await startCore(configText(ports), {
    prefix: [process.execPath, `--import=data:text/javascript,${encodeURIComponent(faults)}`],
    program: join(import.meta.dirname, "..", "..", "src", "boot.mjs"),
  });
  await core.shows(/level=error msg="a fault of weir, please report it: Error: lost throw/);
  await core.shows(/level=error msg="a fault of weir, please report it: Error: lost promise/);
  assert.equal(await reachable(ports[0] as number, "127.0.0.1"), true);
  assert.equal(await core.stop("SIGTERM"), 0);
});

test("out of descriptors: clients are turned away, nothing spins, and it goes on afterwards", async () => {
  const ports = await freePorts(2);
  const [mixed] = ports as [number];
  await using origin = await openTcpOrigin(echo);
  await using core = await startCore(configText(ports), { prefix: ["prlimit", "--nofile=100"] });
  const clients = Array.from({ length: 300 }, () => {
    const socket = connect(mixed, "127.0.0.1");
    socket.on("error", () => {}); // being turned away is what it is about
    socket.write(`CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\n\r\n`);
    return socket;
  });
  await delay(1_000);
  const before = ticksOf(core.pid);
  await delay(1_000);
  assert.ok(
    ticksOf(core.pid) - before < 50,
    "more than half a second of CPU time in a second without events",
  );
  for (const socket of clients) socket.destroy();
  await eventually(async () => {
    using client = await openRawClient(mixed);
    client.send(`CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\n\r\nhello`);
    await client.until("hello");
  });
});

const port16 = (port: number): readonly number[] => [port >> 8, port & 255];

/** How far a client gets before it goes: each leaves a connection behind that has to be noticed. */
const ABORTED: Readonly<Record<string, (client: RawClient, silentPort: number) => Promise<unknown>>> = {
  ...PHASES,
  "waits for a dial": async (client) => client.send("CONNECT 192.0.2.1:80 HTTP/1.1\r\n\r\n"),
  "uploads to a server that reads": async (client, silentPort) => {
    client.send(Buffer.from([5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, ...port16(silentPort)]));
    await client.read(12);
    client.send(Buffer.alloc(100_000));
  },
  "stops in the body of a plain request": async (client, silentPort) =>
    client.send(`POST http://127.0.0.1:${silentPort}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\nabc`),
};

test("clients that reset their connections in any phase leave no descriptor and no row", async (context) => {
  const ports = await freePorts(2);
  const [mixed, controller] = ports as [number, number];
  await using silent = await openTcpOrigin((socket) => void socket.resume());
  await using core = await startCore(configText(ports));
  const before = descriptorsOf(core.pid);
  const each = 100;
  for (const [phase, act] of Object.entries(ABORTED)) {
    for (let round = 0; round < each; round += 20)
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          const client = await openRawClient(mixed);
          await act(client, silent.port);
          client.socket.resetAndDestroy();
        }),
      );
    await eventually(async () => assert.ok(descriptorsOf(core.pid) <= before + 2, phase));
  }
  await eventually(async () => {
    const shown = await (await fetch(`http://127.0.0.1:${controller}/connections`)).json();
    const { connections } = shown as { connections: readonly unknown[] | null };
    assert.equal(connections?.length ?? 0, 0);
  });
  assert.doesNotMatch(core.output(), /a fault of weir|Warning/);
  context.diagnostic(`${each} resets in each of ${Object.keys(ABORTED).length} phases`);
});

/** CPU time of a process in hundredths of a second. */
function ticksOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** Tries again for ten seconds. */
async function eventually(attempt: () => Promise<void>): Promise<void> {
  for (const untilMs = performance.now() + 10_000; ;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > untilMs) throw error;
      await delay(20);
    }
  }
}
