/** FFI faults are crashes, so the work is done in a child: `node socket-options.test.ts child`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openDirectDialer } from "#net/direct-dialer.ts";
import { LOOPBACK_V4 } from "#net/ip.ts";
import { openLibc } from "#platform/linux/libc.ts";
import { bindToDevice, deviceOf, markOf, setMark } from "#platform/linux/sockopt.ts";
import { openSockets } from "#platform/portable.ts";
import type { DirectDialerOptions } from "#net/direct-dialer.ts";
import { inbox, readAll } from "../support/client.ts";
import { watchLeaks } from "../support/leaks.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { freePort, missing } from "../support/peer.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { startCore } from "../support/start-core.ts";

const self = fileURLToPath(import.meta.url);
const needsRoot: { readonly skip?: string } =
  process.platform !== "linux" || process.getuid?.() !== 0
    ? { skip: "SKIP socket options: SO_MARK needs Linux and root" }
    : {};

if (process.argv[2] === "child") await child();
else {
  test("mark and interface are set before the handshake", { ...needsRoot, timeout: 30_000 }, async () => {
    const args = ["--disable-warning=ExperimentalWarning", self, "child"];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    assert.equal(stdout, "good\n");
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

async function child(): Promise<void> {
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
  console.log("good");
}
