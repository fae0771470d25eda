/** What an inbound is given in tests: real sockets on loopback, port 0. */
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { DialError } from "#core/errors.ts";
import type { HostMemory } from "#core/host-memory.ts";
import type { Accept, Access, Inbound, InboundEnv } from "#core/inbound.ts";
import { SILENT } from "#core/log.ts";
import type { Dialer, Outbound } from "#core/outbound.ts";
import type { Protocol } from "#core/protocol.ts";
import type { Endpoint, Ip } from "#core/session.ts";
import { LOOPBACK_V4, socketIp } from "#net/address/ip.ts";
import { acceptedSocket } from "./accepted.ts";
import { listeningDatagrams } from "./listening-datagrams.ts";
import { literalsOnly } from "./resolvers.ts";
import { textFiles } from "./text-files.ts";
import { tlsProvider } from "./tls.ts";

export const OPEN_ACCESS: Access = {
  accounts: [],
  skipsAuthentication: () => false,
  admits: () => true,
};

export interface TestInboundEnv extends InboundEnv, AsyncDisposable {}

export interface TestEnvOptions {
  readonly accept: Accept;
  readonly access?: Partial<Access>;
  readonly ip?: Ip;
  /** As the host's; absent: nothing is kept. */
  readonly memory?: HostMemory | undefined;
  /** Absent: nothing is dialled. */
  readonly dialer?: Dialer;
}

/** Disposing it closes the listening sockets; connections end by themselves or with the test. */
export function openInboundEnv(options: TestEnvOptions): TestInboundEnv {
  const { accept, access = {}, ip = LOOPBACK_V4, memory } = options;
  const opened = new AsyncDisposableStack();
  const nowhere = () => Promise.reject(new DialError("failed", "this test dials nothing"));
  return {
    name: "test-in",
    accept,
    access: { ...OPEN_ACCESS, ...access },
    nowMs: Date.now,
    ...(memory === undefined ? {} : { memory }),
    log: SILENT,
    files: textFiles,
    tls: tlsProvider,
    dialer: options.dialer ?? { connect: nowhere, associate: nowhere },
    through: () => ({ connect: nowhere, associate: nowhere }),
    ruleList: null,
    target: null,
    routingMark: 0,
    async listenTcp({ onAccepted }) {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
        onAccepted(acceptedSocket(socket), listener()),
      );
      const listener = (): Endpoint => {
        const { address, port } = server.address() as AddressInfo;
        return { ip: socketIp(address), port };
      };
      const sockets = new Set<{ destroy(): unknown }>();
      server.on("connection", (socket) => {
        sockets.add(socket);
        socket.on("close", () => sockets.delete(socket));
      });
      server.listen(0, ip);
      await once(server, "listening");
      opened.defer(async () => {
        server.close();
        for (const socket of sockets) socket.destroy();
        await once(server, "close");
      });
      return [listener()];
    },
    listenTransparentUdp: () => Promise.reject(new Error("captured datagrams need a namespace of their own")),
    async listenUdp(on) {
      const { socket, close } = await listeningDatagrams({ ip, port: 0 });
      opened.defer(() => {
        close();
        return socket.closed;
      });
      on(socket);
      return [socket.local];
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export interface OpenedInbound extends AsyncDisposable {
  readonly port: number;
  readonly inbound: Inbound;
}

/** Checks `raw` by the protocol's schema and opens its inbound on a loopback port. */
export async function openTestInbound(
  protocol: Protocol,
  raw: Readonly<Record<string, unknown>>,
  options: TestEnvOptions,
): Promise<OpenedInbound> {
  const side = protocol.inbound;
  if (side === undefined) throw new Error(`${protocol.type} has no inbound`);
  const env = openInboundEnv(options);
  const inbound = await side.open(side.schema.parse(raw) as never, env);
  return {
    inbound,
    port: inbound.endpoints[0]?.port ?? 0,
    async [Symbol.asyncDispose]() {
      await inbound[Symbol.asyncDispose]();
      await env[Symbol.asyncDispose]();
    },
  };
}

/** Checks `raw` by the protocol's schema and opens its outbound, which reaches its server by `dialer`. */
export async function openTestOutbound(
  protocol: Protocol,
  raw: Readonly<Record<string, unknown>>,
  dialer: Dialer,
  nowMs: () => number = Date.now,
): Promise<Outbound> {
  const side = protocol.outbound;
  if (side === undefined) throw new Error(`${protocol.type} has no outbound`);
  return side.open(side.schema.parse(raw) as never, {
    name: "test-out",
    dialer,
    resolver: literalsOnly,
    nowMs,
    log: SILENT,
    files: textFiles,
    tls: tlsProvider,
  });
}
