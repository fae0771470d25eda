/** The accepting side of SOCKS 4, 4a and 5, up to the session. */
import type { InboundEnv } from "#core/inbound.ts";
import type { DatagramSockets } from "#net/udp/datagram-socket.ts";
import type { ByteReader } from "#net/stream/byte-reader.ts";
import { Refusal } from "#protocols/mixed/listen.ts";
import type { Client } from "#protocols/mixed/client.ts";
import { openAssociation } from "./associate.ts";
import * as replies from "./replies.ts";
import { socks4Session, socks5Session } from "./session.ts";
import * as wire from "./wire.ts";

export interface SocksOptions {
  readonly udp: boolean;
  /** For the associations of the listener. */
  readonly datagrams: DatagramSockets;
}

/** Serves a client whose first byte is 4 or 5; `firstByte` was looked at, not taken. */
export async function serveSocks(
  client: Client,
  reader: ByteReader,
  firstByte: number,
  options: SocksOptions,
  env: InboundEnv,
): Promise<void> {
  if (firstByte === 4) await serve4(client, reader, env);
  else await serve5(client, reader, options, env);
}

async function serve4(client: Client, reader: ByteReader, env: InboundEnv): Promise<void> {
  const { connection, accounts } = client;
  const { command, destination, userId } = await reader.take(wire.decodeRequest4);
  if (accounts !== null && !accounts.verify(userId, ""))
    throw new Refusal(wire.encodeReply4(93), "SOCKS4 user id unknown");
  if (command !== wire.CONNECT) throw new Refusal(wire.encodeReply4(91), `SOCKS4 command ${command}`);
  reader[Symbol.dispose]();
  const user = accounts === null ? null : userId;
  env.accept(socks4Session(connection, destination, user, env));
}

async function serve5(
  client: Client,
  reader: ByteReader,
  options: SocksOptions,
  env: InboundEnv,
): Promise<void> {
  const { connection } = client;
  const user = await negotiate(client, reader);
  const { command, destination } = await reader.take(wire.decodeRequest);
  if (command === wire.CONNECT && destination !== null) {
    reader[Symbol.dispose]();
    env.accept(socks5Session(connection, destination, user, env));
  } else if (command === wire.UDP_ASSOCIATE && destination !== null && options.udp) {
    reader[Symbol.dispose]();
    await openAssociation(connection.stream(), connection, user, { env, datagrams: options.datagrams });
  } else {
    const unknownType = destination === null && (command === wire.CONNECT || command === wire.UDP_ASSOCIATE);
    const code = unknownType ? replies.ADDRESS_TYPE_UNSUPPORTED : replies.COMMAND_UNSUPPORTED;
    throw new Refusal(wire.encodeReply(code), `SOCKS5 command ${command} refused with ${code}`);
  }
}

/**
 * The user's name, or null where none is required. A client that offers nothing but a password to a listener without users
 * is admitted with any credentials: having some configured is no reason to fail.
 */
async function negotiate({ connection, accounts }: Client, reader: ByteReader): Promise<string | null> {
  const offered = await reader.take(wire.decodeGreeting);
  if (accounts === null && offered.includes(wire.NO_AUTHENTICATION)) {
    connection.reply(wire.encodeChoice(wire.NO_AUTHENTICATION));
    return null;
  }
  if (!offered.includes(wire.USER_PASSWORD))
    throw new Refusal(
      wire.encodeChoice(wire.NO_ACCEPTABLE_METHOD),
      "SOCKS5 client offers no method wanted here",
    );
  connection.reply(wire.encodeChoice(wire.USER_PASSWORD));
  const { username, password } = await reader.take(wire.decodeCredentials);
  if (accounts !== null && !accounts.verify(username, password))
    throw new Refusal(wire.encodeVerdict(false), "SOCKS5 user name or password wrong");
  connection.reply(wire.encodeVerdict(true));
  return accounts === null ? null : username;
}
