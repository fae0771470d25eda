import type { Duplex } from "node:stream";
import { ConfigError } from "#core/errors.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import { type Destination, destinationText } from "#core/session.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import { UserInbound } from "#protocols/managed/user-inbound.ts";
import { isMux, isMuxCool } from "#protocols/mux/inbound.ts";
import { versionOf } from "#protocols/udp-over-tcp/index.ts";
import { BARE_SERVER } from "#transport/server.ts";
import { serveDatagrams } from "./inbound-udp.ts";
import { CipherMemory } from "./memory.ts";
import { methodOf } from "./methods.ts";
import type { InboundOptions } from "./options.ts";
import { openStream } from "#net/stream/departing-stream.ts";
import { type Request, serverHandshake } from "./server-handshake.ts";
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
    async authenticate({ stream }, ends) {
      const table = shell.users;
      const request = await readHandshake(stream, serverHandshake(table, salts, chance), SILENCE_MS);
      env.log.debug(
        () =>
          `listener ${env.name}: ${request.user ?? "client"} asks for ${destinationText(request.destination)}`,
      );
      serve(stream, request, shell.admit(request.user, table, ends), options["mux-option"]);
    },
  });
  if (options.udp) await env.listenUdp((socket) => serveDatagrams(socket, shell, env, memory));
  return inbound;
}

function serve(
  wire: Duplex,
  { destination, codec, payload }: Request,
  connection: AuthenticatedConnection,
  mux: InboundOptions["mux-option"],
): void {
  const stream = openStream(wire, codec, { discardOnFaultMs: SILENCE_MS });
  if (payload.length > 0) stream.unshift(payload);
  connection.holdStream(stream, wire);
  const onStream = (sub: Duplex, to: Destination, reply: (failure: Error | null) => void): void => {
    const version = versionOf(to);
    if (version === null) return connection.onStream(sub, to, reply);
    reply(null);
    connection.serveUdpOverTcp(sub, version);
  };
  if (isMux(destination)) connection.serveMux(stream, mux, onStream);
  else if (isMuxCool(destination)) connection.serveMuxCool(stream);
  // The protocol has no answer to a dial: success is the first byte, failure the end.
  else onStream(stream, destination, (failure) => void (failure !== null && stream.destroy()));
}
