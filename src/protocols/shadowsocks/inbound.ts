import { ConfigError } from "#core/errors.ts";
import { continueWith } from "#lib/continue-with.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import { type Destination, destinationText } from "#core/session.ts";
import { type PendingClient, readAgain, readFirst } from "#net/listen/first-bytes.ts";
import type { ClientStream } from "#net/listen/opened-session.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import { UserInbound } from "#protocols/managed/user-inbound.ts";
import { isMux, isMuxCool } from "#protocols/mux/inbound.ts";
import { versionOf } from "#protocols/udp-over-tcp/index.ts";
import { BARE_SERVER } from "#transport/server.ts";
import { serveDatagrams } from "./inbound-udp.ts";
import { CipherMemory } from "./memory.ts";
import { methodOf } from "./methods.ts";
import type { InboundOptions } from "./options.ts";
import { clientStream } from "#net/stream/departing-stream.ts";
import { EVERY_SALT, serverHandshake } from "./server-handshake.ts";
import { serverUsers } from "./server-keys.ts";
import { chanceBy } from "./sip022.ts";

/** How long a peer that does not fit is read on in silence: what servers without this habit do with slow clients. */
const SILENCE_MS = 60_000;

/** Listens for clients of one cipher. Throws `ConfigError` for keys that do not fit it. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const { cipher, password, users } = options;
  const method = methodOf(cipher);
  if (method.edition === "stream")
    env.log.warning(
      `listener ${env.name}: cipher ${cipher} protects nothing against change, and shows by its answers that it is there`,
    );
  const shell = new UserInbound(env, {
    type: "ShadowSocks",
    users: serverUsers(method, password, users ?? null),
    written: users ?? [],
    tableOf(next: readonly User[]) {
      if (users !== undefined) return serverUsers(method, password, next);
      throw new ConfigError(`listener ${env.name}: its one key knows no users`);
    },
  });
  const chance = chanceBy(env.nowMs);
  const memory = env.memory?.of(CipherMemory) ?? new CipherMemory();
  const salts = method.edition === "2022" ? memory.salts2022 : memory.salts;
  const inbound = await shell.listen(BARE_SERVER, {
    mayBeBare: true,
    silenceMs: SILENCE_MS,
    readsFirst: method.edition === "2022" || method.edition === "sip004",
    authenticate(client, ends) {
      const table = shell.users;
      const read = readFirst(client, serverHandshake(table, salts, chance), SILENCE_MS);
      return continueWith(read, (request) => {
        env.log.debug(
          () =>
            `listener ${env.name}: ${request.user ?? "client"} asks for ${destinationText(request.destination)}`,
        );
        const again = () => readAgain(client, serverHandshake(table, EVERY_SALT, chance));
        const opened = clientStream(request, again, SILENCE_MS);
        const connection = shell.admit(request.user, table, ends);
        serve(client, opened, request.destination, connection, options["mux-option"]);
      });
    },
  });
  if (options.udp) await env.listenUdp((socket) => serveDatagrams(socket, shell, env, memory));
  return inbound;
}

function serve(
  client: PendingClient,
  opened: ClientStream,
  destination: Destination,
  connection: AuthenticatedConnection,
  mux: InboundOptions["mux-option"],
): void {
  const version = versionOf(destination);
  const isMany = isMux(destination) || isMuxCool(destination);
  if (!isMany && version === null) return connection.serve(client, opened, destination);
  if (isMux(destination)) return connection.serveMuxClient(client, opened, mux, true);
  const stream = connection.openStream(client, opened);
  if (isMuxCool(destination)) connection.serveMuxCool(stream);
  else if (version !== null) connection.serveUdpOverTcp(stream, version);
}
