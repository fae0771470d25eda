import { ConfigError } from "#core/errors.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import { UserInbound } from "#protocols/managed/user-inbound.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { listenThreaded } from "#protocols/managed/listen-threaded.ts";
import { openQuicTlsServer } from "#transport/quic/server/tls.ts";
import type { InboundOptions } from "./inbound-options.ts";
import { congestionOf } from "./congestion.ts";
import { ServerSession, type ServerSessionOptions } from "./server-session.ts";
import { credentialOf, TuicUsers } from "./users.ts";

const NO_ERROR = 0;
const DEFAULT_IDLE_MS = 15_000;
const DEFAULT_AUTHENTICATION_MS = 1000;
const DEFAULT_PACKET_BYTES = 1500;
const MIB = 1024 * 1024;
/**
 * Of a connection, before and after its client is known. What an unauthenticated client makes us keep is little; but its authentication has to fit in
 * behind what a client may have said before.
 */
const UNAUTHENTICATED_WINDOW_BYTES = 128 * 1024;
const WINDOW_BYTES = 20 * MIB;

/** Throws `ConfigError`: users that are none, no certificate, or no QUIC in this runtime. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const { name } = env;
  const where = `listener ${name}`;
  const users = Object.entries(options.users ?? {}).map(([uuid, password]) => ({
    id: uuid,
    credential: credentialOf(uuid, password),
    flow: null,
  }));
  if (options.users !== null && users.length === 0)
    throw new ConfigError(`${where}: users: there is none, so no client could connect`);
  const noUsers = TuicUsers.empty();
  const tableOf = (list: readonly User[]) => noUsers.with(list, where);
  const shell = new UserInbound(env, {
    type: "Tuic",
    users: tableOf(users),
    written: users,
    tableOf,
    changeTable: (table, change) => table.changed(change, where),
  });
  using undo = new DisposableStack();
  const alpn = options.alpn ?? [HTTP3_ALPN];
  const { tls, files, log } = env;
  const server = undo.use(await openQuicTlsServer(options, { where, alpn, tls, files, log }));
  const session: ServerSessionOptions = {
    users: () => shell.users,
    admit: (user, table, ends) => shell.admit(user.id, table, ends),
    authenticationMs: options["authentication-timeout"] || DEFAULT_AUTHENTICATION_MS,
    windowBytes: WINDOW_BYTES,
    mostPacketBytes: options["max-udp-relay-packet-size"] || DEFAULT_PACKET_BYTES,
    mux: options["mux-option"],
  };
  const idleTimeoutMs = options["max-idle-time"] || DEFAULT_IDLE_MS;
  const common = {
    numbers: { idleTimeoutMs, maxData: UNAUTHENTICATED_WINDOW_BYTES },
    abortCode: NO_ERROR,
    closeCode: NO_ERROR,
    filter: null,
  };
  const endpoints = await listenThreaded(env, {
    ...common,
    tls: server,
    congestion: congestionOf(options),
    filterSpec: null,
    onClient: (client) => new ServerSession(client, session),
  });
  return shell.open(endpoints, undo.move());
}
