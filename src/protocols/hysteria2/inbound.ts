import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import { listenThreaded } from "#protocols/managed/listen-threaded.ts";
import { PasswordTable } from "#protocols/managed/password-table.ts";
import { UserInbound } from "#protocols/managed/user-inbound.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { NO_ERROR, REQUEST_CANCELLED } from "#transport/http3/request.ts";
import { OWN_NUMBERS } from "#transport/quic/connection-options.ts";
import { openQuicTlsServer } from "#transport/quic/server/tls.ts";
import { openMasquerade } from "./masquerade/index.ts";
import { bbrProfile, type InboundOptions, receiveWindows } from "./options.ts";
import { obfsSpec, openObfs } from "./obfs.ts";
import { ServerSession, type ServerSessionOptions } from "./server-session.ts";

/** What visitors may send ahead: much more than a request, and little for each of many. */
const VISITOR_WINDOW_BYTES = 256 * 1024;

/** Throws `ConfigError`: users with equal passwords, no certificate, a short password of `obfs`, or no QUIC in this runtime. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const { name } = env;
  const where = `listener ${name}`;
  const filter = openObfs(options, where);
  const noUsers = PasswordTable.empty((password) => Buffer.from(password)); // all tables of the listener share its key
  const tableOf = (users: readonly User[]) => noUsers.with(users, where);
  const users = Object.entries(options.users).map(([id, credential]) => ({ id, credential, flow: null }));
  const shell = new UserInbound(env, {
    type: "Hysteria2",
    users: tableOf(users),
    written: users,
    tableOf,
    changeTable: (table, change) => table.changed(change, where),
  });
  using undo = new DisposableStack();
  const alpn = options.alpn ?? [HTTP3_ALPN];
  const tls = undo.use(
    await openQuicTlsServer(options, { where, alpn, tls: env.tls, files: env.files, log: env.log }),
  );
  const windows = receiveWindows(options);
  const session: ServerSessionOptions = {
    windowBytes: windows.maxData ?? OWN_NUMBERS.maxData,
    admit(password, ends) {
      const table = shell.users;
      const user = table.find(password);
      return user === null ? null : shell.admit(user, table, ends);
    },
    masquerade: openMasquerade(options.masquerade, { where, files: env.files, dialer: env.dialer }),
    upBytes: options.up,
    downBytes: options.down,
    ignoresClientBandwidth: options["ignore-client-bandwidth"],
    udpMtu: options["udp-mtu"],
    mux: options["mux-option"],
  };
  const endpoints = await listenThreaded(env, {
    tls,
    numbers: { idleTimeoutMs: options["max-idle-time"], ...windows, maxData: VISITOR_WINDOW_BYTES },
    abortCode: REQUEST_CANCELLED,
    closeCode: NO_ERROR,
    congestion: { kind: "bbr", profile: bbrProfile(options) },
    filter,
    filterSpec: filter === null ? null : obfsSpec(options),
    onClient: (client) => new ServerSession(client, session),
  });
  return shell.open(endpoints, undo.move());
}
