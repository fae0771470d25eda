import type { Duplex } from "node:stream";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import { isPlainSocket } from "#core/handover.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { Destination } from "#core/session.ts";
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
import { COMMAND_UDP, decodeRequest, KEY_BYTES, keyOf, packetFraming, type TrojanRequest } from "./wire.ts";

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
  const shell = new UserInbound(env, { type: "Trojan", users: tableOf(users), written: users, tableOf });
  return await shell.listen(await openTransportServer(options, env), {
    mayBeBare: options["allow-insecure"],
    silenceMs: null,
    async authenticate({ stream, serverName, alpn }, ends) {
      const table = shell.users;
      const greeting = await readGreeting(stream, table, options.fallbacks.length > 0);
      if ("user" in greeting) {
        const connection = shell.admit(greeting.user, table, ends);
        return await serve(stream, greeting.request, connection, options["mux-option"]);
      }
      const fallback = chooseFallback(options.fallbacks, { serverName, alpn, first: greeting.first });
      if (fallback === null) throw new ProtocolError(greeting.refused);
      await serveFallback(stream, fallback, ends, env.dialer);
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

async function serve(
  carried: Duplex,
  { command, destination }: TrojanRequest,
  connection: AuthenticatedConnection,
  mux: InboundOptions["mux-option"],
): Promise<void> {
  // Workers take a bare socket and close it here; only what lies over it can still be ended by us.
  const stream = isPlainSocket(carried) ? new CodecStream(carried, new RequestCodec(null)) : carried;
  connection.holdStream(stream, carried);
  if (command === COMMAND_UDP) {
    // Some peers put no real address into the request itself: the first packet has it.
    const first = await readFirstAddress(stream);
    connection.onFlow(new StreamFlow(stream, packetFraming("server")), first);
  } else if (isMux(destination)) connection.serveMux(stream, mux, connection.onStream);
  else if (isMuxCool(destination)) connection.serveMuxCool(stream);
  else connection.onSilentStream(stream, destination);
}

/** Reads nothing beyond the request; what is refused stays in the stream, for the fallback. */
async function readGreeting(stream: Duplex, { byKey }: TrojanUsers, mayFallBack: boolean): Promise<Greeting> {
  using reader = new ByteReader(stream, { timeoutMs: HANDSHAKE_TIMEOUT_MS, maxBytes: 1 << 20 });
  return await reader.take<Greeting>((bytes) => {
    const refuse = (refused: string) => ({ value: { refused, first: Buffer.from(bytes) }, size: 0 });
    // A web request has no 56 hex digits: with a web server behind it, it is passed on as soon as that shows.
    if (mayFallBack && !/^[0-9a-f]*$/.test(bytes.toString("latin1", 0, KEY_BYTES)))
      return refuse("no Trojan key");
    if (bytes.length < KEY_BYTES) return null;
    const user = byKey.get(bytes.toString("latin1", 0, KEY_BYTES));
    if (user === undefined) return refuse("an unknown password");
    const decoded = decodeRequest(bytes);
    return decoded === null ? null : { value: { user, request: decoded.value }, size: decoded.size };
  });
}

async function readFirstAddress(stream: Duplex): Promise<Destination> {
  using reader = new ByteReader(stream, { timeoutMs: HANDSHAKE_TIMEOUT_MS, maxBytes: 1 << 20 });
  return await reader.take((bytes) => {
    const found = decodeSocksAddress(bytes);
    return found === null ? null : { value: found.destination, size: 0 };
  });
}
