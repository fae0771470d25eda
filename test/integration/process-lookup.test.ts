/** Finds a real child process by the connection that it opened. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { basename } from "node:path";
import { after, test } from "node:test";
import type { Endpoint, Network } from "#core/session.ts";
import { bytesOfIp, LOOPBACK_V4, parseIp, socketIp } from "#net/address/ip.ts";
import { openLinuxProcesses } from "#platform/linux/process.ts";
import { findByDiag } from "#platform/linux/process-diag.ts";
import { findInTables } from "#platform/linux/process-socket.ts";
import { openProcessLookup } from "#platform/process.ts";

const skip = process.platform === "linux" ? false : "SKIP process lookup: Linux only";
const children: ChildProcess[] = [];
after(() => children.forEach((child) => child.kill("SIGKILL")));

const TCP_CLIENT =
  "require('net').connect(+process.argv[1], process.argv[2]).on('error', () => process.exit(1))";
const UDP_CLIENT =
  "const s = require('dgram').createSocket('udp4'); s.send('x', +process.argv[1], process.argv[2]); setInterval(() => {}, 1e6)";

function run(script: string, port: number, host: string): ChildProcess {
  const child = spawn(process.execPath, ["-e", script, String(port), host], { stdio: "ignore" });
  children.push(child);
  return child;
}

/** A child's TCP connection: its endpoint and the endpoint it is connected to. */
async function tcpClient(
  host: string,
  listen: string,
): Promise<{ child: ChildProcess; source: Endpoint; peer: Endpoint }> {
  const server = createServer().listen(0, listen);
  await once(server, "listening");
  const child = run(TCP_CLIENT, (server.address() as AddressInfo).port, host);
  const [socket] = (await once(server, "connection")) as [Socket];
  socket.on("error", () => {}); // the child is killed at the end
  after(() => {
    socket.destroy();
    server.close();
  });
  return {
    child,
    source: { ip: socketIp(socket.remoteAddress), port: socket.remotePort as number },
    peer: { ip: socketIp(socket.localAddress), port: socket.localPort as number },
  };
}

async function udpClient(): Promise<{ child: ChildProcess; source: Endpoint; peer: Endpoint }> {
  const server = createSocket("udp4").bind(0, "127.0.0.1");
  await once(server, "listening");
  after(() => server.close());
  const { port } = server.address();
  const child = run(UDP_CLIENT, port, "127.0.0.1");
  const [, from] = (await once(server, "message")) as [Buffer, { port: number }];
  return { child, source: { ip: LOOPBACK_V4, port: from.port }, peer: { ip: LOOPBACK_V4, port } };
}

const WAYS = {
  sock_diag: () => openLinuxProcesses(bytesOfIp),
  "/proc/net": () => openLinuxProcesses(bytesOfIp, findInTables(bytesOfIp)),
};

for (const [way, open] of Object.entries(WAYS)) {
  test(`a child is found by its connection (${way})`, { skip }, async () => {
    const lookup = open();
    const clients: [Network, Awaited<ReturnType<typeof tcpClient>>][] = [
      ["tcp", await tcpClient("127.0.0.1", "127.0.0.1")],
      ["tcp", await tcpClient("::1", "::")],
      ["tcp", await tcpClient("127.0.0.1", "::")],
      ["udp", await udpClient()],
    ];
    for (const [network, { source, peer }] of clients) {
      const query = { network, source, peers: [{ ip: LOOPBACK_V4, port: 1 }, peer] };
      const found = await lookup.process(query);
      assert.equal(found?.path, process.execPath);
      assert.equal(found?.name, basename(process.execPath));
      assert.equal(found?.uid, process.getuid?.());
      assert.equal(await lookup.uid(query), process.getuid?.());
    }
  });

  test(`a socket that is not here has no process (${way})`, { skip }, async () => {
    const lookup = open();
    const source = { ip: parseIp("192.0.2.7") as typeof LOOPBACK_V4, port: 40000 };
    const query = { network: "tcp" as const, source, peers: [{ ip: LOOPBACK_V4, port: 1 }] };
    assert.equal(await lookup.uid(query), null);
    assert.equal(await lookup.process(query), null);
  });
}

test("this runtime asks the kernel directly", { skip }, () => {
  assert.notEqual(findByDiag(bytesOfIp), null);
});

test("many searches at once are all answered", { skip }, async () => {
  const lookup = openLinuxProcesses(bytesOfIp);
  const { source, peer } = await tcpClient("127.0.0.1", "127.0.0.1");
  const query = { network: "tcp" as const, source, peers: [peer] };
  const answers = await Promise.all(Array.from({ length: 300 }, () => lookup.process(query)));
  assert.equal(answers.filter((answer) => answer?.path === process.execPath).length, 256);
  assert.ok(answers.every((answer) => answer?.uid === process.getuid?.()));
});

test("other systems find no process", async () => {
  const lookup = openProcessLookup(bytesOfIp, "freebsd");
  const query = { network: "tcp" as const, source: { ip: LOOPBACK_V4, port: 1 }, peers: [] };
  assert.equal(await lookup.process(query), null);
  assert.equal(await lookup.uid(query), null);
});
