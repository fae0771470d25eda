/** Our client against our server: an inbound on loopback and an outbound that leads to it, both from options as in a file. */
import { SILENT, type Log } from "#core/log.ts";
import type { Inbound, InboundEnv } from "#core/inbound.ts";
import type { Dialer, Outbound, OutboundEnv } from "#core/outbound.ts";
import type { Protocol } from "#core/protocol.ts";
import type { Metadata } from "#core/session.ts";
import type { TlsProvider } from "#core/tls.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { directAccept, directDialer } from "./direct-accept.ts";
import { openInboundEnv } from "./inbound-env.ts";
import { listeningDatagrams } from "./listening-datagrams.ts";
import { literalsOnly } from "./resolvers.ts";
import { textFiles } from "./text-files.ts";
import { tlsProvider } from "./tls.ts";

type Options = Readonly<Record<string, unknown>>;
interface AnySide<Env, Made> {
  readonly schema: { parse(options: Options): object };
  open(options: object, env: Env): Promise<Made>;
}

export interface Serving extends AsyncDisposable {
  readonly inbound: Inbound;
  readonly port: number;
  /** Of every session, in order of arrival. */
  readonly sessions: readonly Metadata[];
}

/** An inbound that dials everything directly; `fail` as in `directAccept`. */
export async function openServer(
  protocol: Protocol,
  options: Options,
  fail?: (metadata: Metadata) => Error | undefined,
  backend: RelayBackend | null = null,
): Promise<Serving> {
  const { accept, sessions } = directAccept(directDialer, fail, backend);
  const plain = openInboundEnv({ accept });
  const udp = new AsyncDisposableStack();
  let tcpPort = 0;
  // A node has one port for both networks, so the UDP socket goes where the TCP socket is.
  const env: InboundEnv = {
    ...plain,
    dialer: directDialer,
    async listenTcp(options) {
      const endpoints = await plain.listenTcp(options);
      tcpPort = endpoints[0]?.port as number;
      return endpoints;
    },
    async listenUdp(on) {
      const { socket, close } = await listeningDatagrams({ ip: LOOPBACK_V4, port: tcpPort });
      udp.defer(close);
      on(socket);
      return [socket.local];
    },
  };
  const closeAll = async () => {
    await udp.disposeAsync();
    await plain[Symbol.asyncDispose]();
  };
  try {
    const side = protocol.inbound as unknown as AnySide<InboundEnv, Inbound>;
    const inbound = await side.open(side.schema.parse(options), env);
    const port = inbound.endpoints[0]?.port as number;
    const dispose = async () => {
      await inbound[Symbol.asyncDispose]();
      await closeAll();
    };
    return { inbound, port, sessions, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

export function openClient(
  protocol: Protocol,
  options: Options,
  {
    dialer = directDialer,
    log = SILENT,
    tls = tlsProvider,
  }: { dialer?: Dialer; log?: Log; tls?: TlsProvider } = {},
): Promise<Outbound> {
  const env: OutboundEnv = {
    name: "test-out",
    dialer,
    resolver: literalsOnly,
    nowMs: Date.now,
    log,
    files: textFiles,
    tls,
  };
  const side = protocol.outbound as unknown as AnySide<OutboundEnv, Outbound>;
  return side.open(side.schema.parse(options), env);
}

export interface Pair extends AsyncDisposable {
  readonly outbound: Outbound;
  readonly server: Serving;
}

export async function openPair(
  server: Protocol,
  serverOptions: Options,
  client: Protocol,
  clientOptions: Options,
): Promise<Pair> {
  await using undo = new AsyncDisposableStack();
  const serving = undo.use(await openServer(server, serverOptions));
  const address = { server: "127.0.0.1", port: serving.port };
  const outbound = undo.use(await openClient(client, { ...address, ...clientOptions }));
  const opened = undo.move();
  return { outbound, server: serving, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
