import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, Socket, type AddressInfo } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { DialError } from "#core/errors.ts";
import { descriptorOf } from "#core/handover.ts";
import type { WorkerConnection } from "#core/accepted.ts";
import type { Decision } from "#core/router.ts";
import type { DatagramFlow, Ip, Metadata, Network } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { type Libc, openLibc } from "#platform/linux/libc.ts";
import { bindToDevice, openSocketMaker } from "#platform/linux/sockopt.ts";
import { openOtherSockets } from "#platform/process.ts";
import { ip, named, session } from "../../test/support/routing.ts";
import { LoopDetector } from "./loop-detector.ts";

const decisionOf = (type: string): Decision => ({
  outbound: named("DIRECT", { type }),
  chain: [],
  groups: [],
  destination: { host: null, ip: ip("9.9.9.9"), port: 443 },
  dnsMode: "normal",
  rule: null,
  unruled: false,
  facts: {},
});
const DIRECT = decisionOf("Direct");

interface Place {
  readonly ip: string;
  readonly port: number;
}

const SERVER: Place = { ip: "9.9.9.9", port: 443 };

function captured(source: Place, { ip: to, port }: Place = SERVER, network: Network = "tcp"): Metadata {
  const metadata = session(to, { network, inbound: { type: "Redir" } });
  const destination = { ...metadata.destination, port };
  return { ...metadata, destination, source: { ip: source.ip as Ip, port: source.port } };
}

test("kernel-direct.md §5: a captured connection from a live socket of DIRECT is refused, until that one has closed", async () => {
  const server = createServer((socket) => socket.resume()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(socket, "connect");
  const near = { ip: "127.0.0.1", port: socket.localPort ?? 0 };
  const own = captured(near, { ip: "127.0.0.1", port: (server.address() as AddressInfo).port });
  const guard = new LoopDetector(openOtherSockets(bytesOfIp));
  assert.equal(guard.watch(DIRECT, socket), null, "nothing was captured yet");
  guard.check(captured({ ip: "10.0.0.2", port: 1 }), DIRECT);
  const noted = guard.watch(DIRECT, socket);
  assert.throws(
    () => guard.check(own, DIRECT),
    (error) => error instanceof DialError && error.reason === "aborted",
  );
  guard.check(own, decisionOf("Vless"));
  guard.check(captured(near), DIRECT); // another program's, to another server: local ports are shared
  guard.check({ ...own, inbound: { ...own.inbound, type: "Socks5" } }, DIRECT);
  noted?.[Symbol.dispose]();
  guard.check(own, DIRECT);
  assert.equal(guard.watch(decisionOf("Vless"), socket), null);
  socket.destroy();
  server.close();
});

test("a connection with the addresses of one that has gone is known for as long as it lives", async () => {
  const server = createServer((socket) => socket.on("error", () => {})).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const guard = new LoopDetector(() => false);
  guard.check(captured({ ip: "10.0.0.2", port: 1 }), DIRECT);
  using opened = new DisposableStack(); // or a failure would hang
  opened.defer(() => void server.close());
  const open = async (localPort: number): Promise<Socket> => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: "127.0.0.1", localPort });
    opened.defer(() => void socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  const first = await open(0);
  const localPort = first.localPort as number;
  const gone = guard.watch(DIRECT, first);
  first.resetAndDestroy();
  await once(first, "close");
  const second = await open(localPort);
  using _ = guard.watch(DIRECT, second);
  gone?.[Symbol.dispose](); // its session has ended later than its socket
  const own = captured({ ip: "127.0.0.1", port: localPort }, { ip: "127.0.0.1", port });
  assert.throws(() => guard.check(own, DIRECT), DialError);
});

test("datagrams: by the local port, where the source is this machine", () => {
  const guard = new LoopDetector(() => false);
  guard.check(captured({ ip: "10.0.0.2", port: 1 }, SERVER, "udp"), DIRECT);
  const flow = {
    localPorts: [5000],
    send() {},
    receive() {},
    closed: Promise.resolve(),
    async [Symbol.asyncDispose]() {},
  };
  using _ = guard.watch(DIRECT, flow satisfies DatagramFlow);
  assert.throws(
    () => guard.check(captured({ ip: "127.0.0.1", port: 5000 }, SERVER, "udp"), DIRECT),
    DialError,
  );
  guard.check(captured({ ip: "192.0.2.77", port: 5000 }, SERVER, "udp"), DIRECT);
  guard.check(captured({ ip: "127.0.0.1", port: 5001 }, SERVER, "udp"), DIRECT);
});

const skip = process.platform === "linux" ? false : "SKIP sockets bound to a device: Linux only";

test(
  "a program's connection with both ends of one of DIRECT's that is bound to a device is no loop",
  { skip },
  async () => {
    using opened = new DisposableStack(); // or a failure would hang
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => {});
      opened.defer(() => void socket.destroy());
    }).listen(0, "127.0.0.1");
    opened.defer(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    // As where no port was free before: the kernel chooses it for a socket that is bound to the device already.
    const libc = openLibc() as Libc;
    const fd = openSocketMaker(libc, { routingMark: 0, interfaceName: "" }).tcp(4);
    bindToDevice(libc, fd, "lo");
    const bound = new Socket({ fd, manualStart: true } as { fd: number });
    opened.defer(() => void bound.destroy());
    bound.connect({ host: "127.0.0.1", port, localAddress: "127.0.0.1" });
    await once(bound, "connect");
    const near = { ip: ip("127.0.0.1"), port: bound.localPort as number };
    const to = { ip: near.ip, port };

    const isAnother = openOtherSockets(bytesOfIp);
    const [byStream, byDial] = [new LoopDetector(isAnother), new LoopDetector(isAnother)];
    const checks = [byStream, byDial].map((guard) => () => guard.check(captured(near, to), DIRECT));
    for (const check of checks) check(); // arms it
    byStream.watch(DIRECT, bound);
    byDial.dials(captured(near, to), DIRECT, heldAs(bound), to);
    for (const check of checks) assert.throws(check, DialError);

    // The server has these ends already: this one is on its way until the other's has been reset, where a captured one would
    // have gone elsewhere.
    const program = connect({ host: to.ip, port, localAddress: near.ip, localPort: near.port });
    await nextTurn();
    assert.equal(program.localPort, bound.localPort);
    for (const check of checks) check();

    await once(program, "connect");
    for (const check of checks) check();

    // The kernel has it for as long as the server does not end, too.
    program.destroy();
    await once(program, "close");
    for (const check of checks) assert.throws(check, DialError);
  },
);

/** As if a worker had dialled it. */
function heldAs(socket: Socket): WorkerConnection {
  const descriptor = descriptorOf(socket);
  const near = { ip: ip(socket.localAddress as string), port: socket.localPort as number };
  return { dialledFrom: () => ({ ...near, descriptor }) } as WorkerConnection;
}
