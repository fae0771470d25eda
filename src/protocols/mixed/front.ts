/** What http, socks and mixed listeners have in common: who is let in, TLS, one error domain a client. */
import type { Duplex } from "node:stream";
import { z } from "zod";
import { messageOf } from "#core/errors.ts";
import { list, name, secret } from "#core/fields.ts";
import type { PlainOffload, TlsWorkerConnection, TlsOffload } from "#core/held.ts";
import type { Inbound, InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import { endpointText, type Endpoint } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { endWithReply, guardErrors, acceptedConnection, type ConnectionEnds } from "#net/listen/accept.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { nativeTls } from "#platform/tls.ts";
import { tlsServerFields } from "#transport/tls/fields.ts";
import { openTlsServer, type TlsServer } from "#transport/tls/server.ts";
import { readTlsServer } from "#transport/tls/server-options.ts";
import { AccountBook } from "./accounts.ts";
import { offloadedSession } from "./plain-session.ts";
import type { Client } from "./client.ts";

/** `users` absent: the global accounts; an empty list: nobody has to say who they are. */
export const frontFields = {
  users: list(z.object({ username: name(), password: secret() })).optional(),
  ...tlsServerFields,
};
const frontSchema = z.object(frontFields);
export type HandshakeOptions = z.output<typeof frontSchema>;

/**
 * Serves one client up to its session, or for good. What it throws closes that client's connection. The reader, with
 * the one deadline of the handshake, is to be disposed of before the stream is handed on; it ends with the call anyway.
 */
export type Serve = (client: Client, reader: ByteReader) => Promise<void>;

/** Thrown by a `Serve` that wants its client to hear why. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly words: string | Uint8Array;
  constructor(words: string | Uint8Array, message: string) {
    super(message);
    this.words = words;
  }
}

/**
 * Listens and lets clients in. `owned` is disposed of with the inbound, and where it cannot be opened. Throws
 * `ConfigError` where certificate and key cannot be used.
 */
export async function openHandshakes(
  type: "mixed" | "socks" | "http",
  options: HandshakeOptions,
  env: InboundEnv,
  serve: Serve,
  owned: readonly Disposable[] = [],
): Promise<Inbound> {
  using undo = new DisposableStack();
  for (const one of owned) undo.use(one);
  const tls = undo.use(await openTls(options, env));
  const book = bookOf(options, env);
  const letIn = doorOf(options, env, book);
  const on = (client: StreamSocket | TlsWorkerConnection, _: Endpoint, isGreeted?: boolean): void => {
    const arrival = acceptedConnection(client);
    const door = arrival === null ? null : letIn(arrival);
    if (arrival === null || door === null) {
      client.destroy();
      return;
    }
    const isKnown = env.unauthenticated?.enter(client, arrival.source.ip, tls !== null);
    attend(client, tls, isKnown, (stream, reader) =>
      serve(
        {
          stream,
          arrival,
          accounts: door.accounts?.doorkeeper(stream) ?? null,
          isGreeted: isGreeted === true,
        },
        reader,
      ),
    ).catch((error: unknown) => {
      env.log.debug(() => `${type} client ${endpointText(arrival.source)}: ${messageOf(error)}`);
    });
  };
  const frontOf = (): PlainOffload | TlsOffload | null => {
    if (!admitsAll(options, env)) return null; // who may not come in hears nothing
    if (tls !== null) return { handshake: "tls", contexts: tls.contexts, on };
    if (book !== null) return null;
    return { handshake: type, on: (client) => env.accept(offloadedSession(client, env)) };
  };
  const front = frontOf();
  const endpoints = await env.listenTcp(on, front === null ? {} : { front });
  const life = undo.move();
  return {
    name: env.name,
    type,
    endpoints,
    ...(book === null ? {} : usersOf(book, env)),
    [Symbol.asyncDispose]: async () => life.dispose(),
  };
}

async function openTls(options: HandshakeOptions, env: InboundEnv): Promise<TlsServer | null> {
  const read = readTlsServer(options, `listener ${env.name}`);
  return read === null
    ? null
    : openTlsServer(read, env.files, env.log, env.portable === true ? null : nativeTls());
}

/** Takes TLS off and serves; a failure ends the connection and is thrown on to be logged. */
async function attend(
  client: StreamSocket | TlsWorkerConnection,
  tls: TlsServer | null,
  isKnown: (() => void) | undefined,
  serve: (stream: Duplex, reader: ByteReader) => Promise<void>,
): Promise<void> {
  const stream = tls === null ? (client as StreamSocket) : (await tls.accept(client)).stream;
  try {
    guardErrors(stream);
    using reader = new ByteReader(stream, isKnown === undefined ? {} : { onDone: isKnown });
    await serve(stream, reader);
  } catch (error) {
    if (error instanceof Refusal) endWithReply(stream, error.words);
    else stream.destroy();
    throw error;
  }
}

/** Null: nobody has to say who they are. */
function bookOf({ users }: HandshakeOptions, { access }: InboundEnv): AccountBook | null {
  const accounts = users ?? access.accounts;
  return accounts.length === 0 ? null : new AccountBook(accounts);
}

/** Relay threads may have the sockets of those who are gone: what is left of these is their sessions. */
function usersOf(book: AccountBook, { endSessions }: InboundEnv): Omit<ManagedInbound, keyof Inbound> {
  const replaceUsers = (users: readonly User[]): void => {
    const gone = book.replace(users);
    if (gone.size > 0) endSessions?.(gone);
  };
  return { written: book.written, replaceUsers };
}

/** The source filter and the exempted prefixes belong to the global accounts; own users stand for themselves. */
function doorOf({ users }: HandshakeOptions, { access }: InboundEnv, accounts: AccountBook | null) {
  const isOwn = users !== undefined;
  return ({ source }: ConnectionEnds): { readonly accounts: AccountBook | null } | null => {
    if (isOwn) return { accounts };
    if (!access.admits(source.ip)) return null;
    return { accounts: access.skipsAuthentication(source.ip) ? null : accounts };
  };
}

/** Whatever address it comes from. */
function admitsAll({ users }: HandshakeOptions, { access }: InboundEnv): boolean {
  return users !== undefined || access.admitsAll === true;
}
