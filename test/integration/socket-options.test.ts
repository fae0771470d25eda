/** Options of sockets, as the kernel has them afterwards; where FFI does it, in a process of its own. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { promisify } from "node:util";
import type { Dialer } from "#core/outbound.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { openLibc, type Libc } from "#platform/linux/libc.ts";
import { OwnPorts } from "#platform/linux/own-port.ts";
import { bindToDevice, deviceOf, markOf, setMark } from "#platform/linux/sockopt.ts";
import { openSockets } from "#platform/portable.ts";
import type { DirectDialerOptions } from "#net/dial/direct-dialer.ts";
import { isChild, runAsChild } from "../support/as-child.ts";
import { inbox, readAll } from "../support/client.ts";
import { watchLeaks } from "../support/leaks.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { freePort, missing } from "../support/peer.ts";
import { openNetns, skipNetns } from "../support/netns.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { startCore } from "../support/start-core.ts";

const DIALS = 200;
const needsRoot: { readonly skip?: string } =
  process.platform !== "linux" || process.getuid?.() !== 0
    ? { skip: "SKIP socket options: SO_MARK needs Linux and root" }
    : {};

if (!(await isChild({ options, ports }))) {
  test("mark and interface are set before the handshake", { ...needsRoot, timeout: 30_000 }, async () => {
    await runAsChild(import.meta.url, "options");
  });

  const few = { skip: skipNetns("ports of bound sockets"), timeout: 30_000 };
  test("no other socket gets the port of a socket that is bound to a device", few, async () => {
    await using netns = await openNetns("ports");
    await netns.run("sysctl", "-qw", "net.ipv4.ip_local_port_range=40000 41023");
    await runAsChild(import.meta.url, "ports", { prefix: netns.prefix });
  });

  test(
    "dns.listen-routing-mark marks both sockets of the DNS server",
    {
      skip: needsRoot.skip ?? missing("ss"),
      timeout: 30_000,
    },
    async () => {
      const port = await freePort();
      await using _core = await startCore(
        `relay: portable\ndns: {enable: true, listen: '127.0.0.1:${port}', listen-routing-mark: 0x2a, nameserver: [127.0.0.1]}\n`,
      );
      const { stdout } = await promisify(execFile)("ss", ["-Hlntue", `sport = :${port}`]);
      const lines = stdout.trim().split("\n");
      assert.deepEqual(
        lines.map((line) => [line.slice(0, 3), /fwmark:(\S+)/.exec(line)?.[1]]),
        [
          ["udp", "0x2a"],
          ["tcp", "0x2a"],
        ],
      );
    },
  );

  test("another system says which key it cannot serve", () => {
    const marked = { routingMark: 1, interfaceName: "" };
    assert.throws(() => openSockets(marked, "darwin"), {
      name: "ConfigError",
      message: /^routing-mark: only Linux/,
    });
    const bound = { routingMark: 0, interfaceName: "en0" };
    assert.throws(() => openSockets(bound, "win32"), { message: /^interface-name: only Linux/ });
    assert.equal(openSockets({ routingMark: 0, interfaceName: "" }, "win32"), null);
  });
}

async function options(): Promise<void> {
  const libc = openLibc();
  assert.ok(libc !== null);
  const fd = libc.socket(2, 1);
  setMark(libc, fd, 0xffff_fffe);
  assert.equal(markOf(libc, fd), 0xffff_fffe);
  assert.equal(deviceOf(libc, fd), "");
  bindToDevice(libc, fd, "lo");
  assert.equal(deviceOf(libc, fd), "lo");
  assert.throws(() => bindToDevice(libc, fd, "no-such-if0"), { name: "SystemError", code: "ENODEV" });
  libc.close(fd);
  assert.throws(() => setMark(libc, fd, 1), { code: "EBADF" });

  const noLeaks = watchLeaks();
  const open = (options: Partial<DirectDialerOptions>) =>
    openDirectDialer({ resolver: literalsOnly, ...options });
  const context = { signal: new AbortController().signal, metadata: null };
  const marked = open({ routingMark: 0x2a, interfaceName: "lo" });
  {
    await using origin = await openTcpOrigin(echo);
    const stream = (await marked.connect(origin.destination, context)) as Socket;
    const handle = (stream as unknown as { _handle: { fd: number } })._handle;
    assert.deepEqual([markOf(libc, handle.fd), deviceOf(libc, handle.fd)], [0x2a, "lo"]);
    const sent = Buffer.alloc(3_000_000, "weir");
    stream.end(sent);
    assert.ok(sent.equals(await readAll(stream)));
    stream.destroy();
    await once(stream, "close");
  }
  const closedPort = { host: null, ip: LOOPBACK_V4, port: 1 };
  await assert.rejects(marked.connect(closedPort, context), { name: "DialError", reason: "refused" });
  await assert.rejects(
    open({ interfaceName: "no-such-if0" }).connect(closedPort, context),
    /interface-name no-such-if0 .*ENODEV/,
  );
  {
    await using origin = await openUdpEcho();
    await using flow = await marked.associate(origin.destination, context);
    const box = inbox(flow);
    flow.send({ payload: Buffer.from("over lo"), destination: origin.destination });
    assert.equal(Buffer.from((await box.next()).payload).toString(), "over lo");
    await using lost = await open({ interfaceName: "no-such-if0" }).associate(origin.destination, context);
    lost.send({ payload: Buffer.from("nowhere"), destination: origin.destination }); // dropped, no throw
  }
  await noLeaks();
}

/** In a namespace with few ports. The kernel gives what is bound to no device the ends of what is, unless its port was taken first. */
async function ports(): Promise<void> {
  const libc = openLibc();
  assert.ok(libc !== null);
  takesAmongFew(libc);
  const bound = openDirectDialer({ resolver: literalsOnly, interfaceName: "lo" });
  const unbound = openDirectDialer({ resolver: literalsOnly });
  const context = { signal: new AbortController().signal, metadata: null };
  await using origin = await openTcpOrigin(() => {});
  using open = new DisposableStack();
  const dial = async (dialer: Dialer): Promise<number | undefined> => {
    const socket = (await dialer.connect(origin.destination, context)) as Socket;
    open.defer(() => socket.destroy()); // not before all have a port
    return socket.localPort;
  };
  const ours = await Promise.all(Array.from({ length: DIALS }, () => dial(bound)));
  const others = await Promise.all(Array.from({ length: DIALS }, () => dial(unbound)));
  const taken = new Set(ours);
  assert.equal(taken.size, DIALS);
  const shared = others.filter((port) => taken.has(port));
  assert.deepEqual(shared, []);
}

/** All of a range, then none, and the socket is as before. */
function takesAmongFew(libc: Libc): void {
  const families = { 4: 2, 6: 10 } as const;
  for (const family of [4, 6] as const) {
    const few = new OwnPorts(libc, [41_024 - 64, 41_023]);
    const sockets = Array.from({ length: 65 }, () => libc.socket(families[family], 1));
    const answers = sockets.map((fd) => few.take(fd, family));
    assert.deepEqual(answers, [...Array<boolean>(64).fill(true), false]);
    const name = Uint8Array.from({ length: 28 }, (_, at) => (at === 0 ? families[family] : 0));
    libc.bind(sockets[64] as number, name); // any other port will do
    for (const fd of sockets) libc.close(fd);
  }
}
