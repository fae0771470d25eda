import type { Duplex } from "node:stream";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import { isPlainSocket } from "#core/handover.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { Destination } from "#core/session.ts";
import { continueWith } from "#lib/continue-with.ts";
import { type PendingClient, readFirst, streamUnread } from "#net/listen/first-bytes.ts";
import type { ClientStream } from "#net/listen/opened-session.ts";
import type { HandshakeStep } from "#net/listen/read-handshake.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { decodeSocksAddress } from "#net/address/socks-address.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import { UserInbound, type UserTable } from "#protocols/managed/user-inbound.ts";
import { isMux, isMuxCool } from "#protocols/mux/inbound.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import { chooseFallback, serveFallback } from "#protocols/shared/fallback.ts";
import { openTransportServer } from "#transport/server.ts";
import { RequestCodec } from "./codec.ts";
import type { InboundOptions } from "./options.ts";
import {
  COMMAND_UDP,
  decodeRequest,
  KEY_BYTES,
  keyOf,
  MOST_REQUEST_BYTES,
  packetFraming,
  type TrojanRequest,
} from "./wire.ts";

const HANDSHAKE_TIMEOUT_MS = 60_000;

/** Throws `ConfigError`: two users with one password, nothing that hides the traffic and no `allow-insecure`, bad TLS keys. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const { name } = env;
  const tableOf = (users: readonly User[]) => trojanUsers(users, `listener ${name}`);
  const users = options.users.map(({ username, password }, index) => ({
    id: username ?? `${index}`,
    credential: password,
    flow: null,
  }));
  const shell = new UserInbound(env, {
    type: "Trojan",
    users: tableOf(users),
    written: users,
    tableOf,
    writtenUsers: ({ byKey }) => ({
      protocol: "trojan",
      keys: [...byKey.keys()],
      names: [...byKey.values()],
    }),
  });
  return await shell.listen(await openTransportServer(options, env), {
    mayBeBare: options["allow-insecure"],
    silenceMs: null,
    readsFirst: true,
    authenticate(client, ends) {
      const table = shell.users;
      const step = greetingStep(table, options.fallbacks.length > 0);
      return continueWith(readFirst(client, step, HANDSHAKE_TIMEOUT_MS), (greeting) => {
        if ("user" in greeting) {
          const connection = shell.admit(greeting.user, table, ends);
          return serve(client, greeting.request, connection, options["mux-option"]);
        }
        const { serverName, alpn } = client;
        const fallback = chooseFallback(options.fallbacks, { serverName, alpn, first: greeting.first });
        if (fallback === null) throw new ProtocolError(greeting.refused);
        return serveFallback(streamUnread(client), fallback, ends, env.dialer);
      });
    },
  });
}

interface TrojanUsers extends UserTable {
  /** User names by their keys. Looked up as a whole, so that timing reveals nothing about single characters. */
  readonly byKey: ReadonlyMap<string, string>;
}

function trojanUsers(users: readonly User[], where: string): TrojanUsers {
  const byKey = new Map<string, string>();
  const identities = new Map<string, string>();
  for (const { id, credential } of users) {
    const key = keyOf(credential);
    const other = byKey.get(key);
    if (other !== undefined)
      throw new ConfigError(`${where}: users ${other} and ${id} have the same password`);
    byKey.set(key, id);
    identities.set(id, key);
  }
  return { byKey, identities };
}

type Greeting =
  | { readonly user: string; readonly request: TrojanRequest }
  | { readonly refused: string; readonly first: Buffer };

const OPENED: ClientStream = {
  // Workers take a bare socket and close it here; only what lies over it can still be ended by us.
  open: (below) => (isPlainSocket(below) ? new CodecStream(below, new RequestCodec(null)) : below),
  wire: { begin: () => ({ kind: "plain", numbers: [], unread: null }) },
  ahead: (shown) => shown,
};

function serve(
  client: PendingClient,
  { command, destination }: TrojanRequest,
  connection: AuthenticatedConnection,
  mux: InboundOptions["mux-option"],
): void | Promise<void> {
  const isMany = isMux(destination) || isMuxCool(destination);
  if (command !== COMMAND_UDP && !isMany) return connection.serve(client, OPENED, destination);
  if (command !== COMMAND_UDP && isMux(destination)) return connection.serveMuxClient(client, OPENED, mux);
  const stream = connection.openStream(client, OPENED);
  if (command === COMMAND_UDP) return serveDatagrams(stream, connection);
  connection.serveMuxCool(stream);
}

/** Takes nothing but the request; what is refused stays where it is, for the fallback. */
function greetingStep({ byKey }: TrojanUsers, mayFallBack: boolean): HandshakeStep<Greeting> {
  return (arrived) => {
    const bytes = arrived.peekUpTo(MOST_REQUEST_BYTES);
    const refuse = (refused: string) => ({ refused, first: Buffer.from(bytes) });
    // A web request has no 56 hex digits: with a web server behind it, it is passed on as soon as that shows.
    if (mayFallBack && !/^[0-9a-f]*$/.test(bytes.toString("latin1", 0, KEY_BYTES)))
      return refuse("no Trojan key");
    if (bytes.length < KEY_BYTES) return null;
    const user = byKey.get(bytes.toString("latin1", 0, KEY_BYTES));
    if (user === undefined) return refuse("an unknown password");
    const decoded = decodeRequest(bytes);
    if (decoded === null) return null;
    arrived.skip(decoded.size);
    return { user, request: decoded.value };
  };
}

/** Some peers put no real address into the request itself: the first packet has it. */
async function serveDatagrams(stream: Duplex, connection: AuthenticatedConnection): Promise<void> {
  const first = await readFirstAddress(stream);
  connection.onFlow(new StreamFlow(stream, packetFraming("server")), first);
}

async function readFirstAddress(stream: Duplex): Promise<Destination> {
  using reader = new ByteReader(stream, { timeoutMs: HANDSHAKE_TIMEOUT_MS, maxBytes: 1 << 20 });
  return await reader.take((bytes) => {
    const found = decodeSocksAddress(bytes);
    return found === null ? null : { value: found.destination, size: 0 };
  });
}
