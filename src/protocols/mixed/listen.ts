/** What http, socks and mixed listeners have in common: admission, TLS, one error domain a client. */
import * as z from "zod";
import { messageOf } from "#core/errors.ts";
import { list, name, secret } from "#core/fields.ts";
import type { AcceptedConnection, Handshake } from "#core/accepted.ts";
import type { Inbound, InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { TlsServer } from "#core/tls.ts";
import { endpointText, type Ip, type StreamSession } from "#core/session.ts";
import { endWithReply, type ListenerContext } from "#net/listen/accept.ts";
import { StreamConnection } from "#net/listen/stream-connection.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { requestedTunnel } from "#protocols/http/tunnel.ts";
import { requestedSocks4, requestedSocks5 } from "#protocols/socks/session.ts";
import { tlsServerFields } from "#transport/tls/fields.ts";
import { readTlsServer } from "#transport/tls/server-options.ts";
import { AccountBook } from "./accounts.ts";
import type { Client } from "./client.ts";

/** `users` absent: the global accounts; an empty list: no credentials are required. */
export const listenFields = {
  users: list(z.object({ username: name(), password: secret() })).optional(),
  ...tlsServerFields,
};
const listenSchema = z.object(listenFields);
export type HandshakeOptions = z.output<typeof listenSchema>;

/**
 * Serves one client up to its session, or for good. What it throws closes that client's connection. The reader, with
 * the one deadline of the handshake, is to be disposed of before the stream is handed on; it ends with the call anyway.
 */
export type Serve = (client: Client, reader: ByteReader) => Promise<void>;

/** Thrown by a `Serve` whose client gets the reason as an answer. */
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
  const admit = admissionOf(options, env, book);
  const onAccepted = (connection: AcceptedConnection): void => {
    const { request, source } = connection;
    if (request !== null) return env.accept(requestedSession(connection, request, env));
    const admitted = admit(source.ip);
    if (admitted === null) return connection.destroy();
    const unknown = env.unauthenticated?.enter(connection, tls !== null);
    attend(connection, tls, unknown && (() => unknown.leave()), (plain, reader) =>
      serve(
        { connection: plain, accounts: admitted.accounts?.authenticator(plain.stream()) ?? null },
        reader,
      ),
    ).catch((error: unknown) => {
      env.log.debug(() => `${type} client ${endpointText(source)}: ${messageOf(error)}`);
    });
  };
  const handshakeOf = (): Handshake => {
    if (!admitsAll(options, env)) return { handshake: "unknown" }; // a client that is not admitted gets no answer
    if (tls !== null) return { handshake: "tls", contexts: tls.contexts };
    return { handshake: book === null ? type : "unknown" };
  };
  const endpoints = await env.listenTcp({ ...handshakeOf(), onAccepted });
  const life = undo.move();
  return {
    name: env.name,
    type,
    endpoints,
    ...(book === null ? {} : usersOf(book, env)),
    [Symbol.asyncDispose]: async () => life.dispose(),
  };
}

/** The session of a request that a worker has read with `readPlain`. */
function requestedSession(
  connection: AcceptedConnection,
  request: Buffer,
  listener: ListenerContext,
): StreamSession {
  const [first] = request;
  if (first === 5) return requestedSocks5(connection, request, listener);
  if (first === 4) return requestedSocks4(connection, request, listener);
  return requestedTunnel(connection, request, listener);
}

async function openTls(options: HandshakeOptions, env: InboundEnv): Promise<TlsServer | null> {
  const read = readTlsServer(options, `listener ${env.name}`);
  return read === null ? null : env.tls.openServer(read, env.files, env.log);
}

/** Takes TLS off and serves; a failure ends the connection and is thrown on to be logged. */
async function attend(
  accepted: AcceptedConnection,
  tls: TlsServer | null,
  isKnown: (() => void) | undefined,
  serve: (plain: AcceptedConnection, reader: ByteReader) => Promise<void>,
): Promise<void> {
  const plain =
    tls === null ? accepted : new StreamConnection((await tls.acceptConnection(accepted)).stream, accepted);
  const stream = plain.stream();
  try {
    using reader = new ByteReader(stream, isKnown === undefined ? {} : { onDone: isKnown });
    await serve(plain, reader);
  } catch (error) {
    if (error instanceof Refusal) endWithReply(stream, error.words);
    else stream.destroy();
    throw error;
  }
}

/** Null: no credentials are required. */
function bookOf({ users }: HandshakeOptions, { access }: InboundEnv): AccountBook | null {
  const accounts = users ?? access.accounts;
  return accounts.length === 0 ? null : new AccountBook(accounts);
}

/** Workers may have the sockets of removed users: those are ended by their sessions. */
function usersOf(book: AccountBook, { endSessions }: InboundEnv): Omit<ManagedInbound, keyof Inbound> {
  const replaceUsers = (users: readonly User[]): void => {
    const gone = book.replace(users);
    if (gone.size > 0) endSessions?.(gone);
  };
  return { written: book.written, replaceUsers };
}

/**
 * The source filter and the exempted prefixes belong to the global accounts; a listener's own users are not affected by
 * them.
 */
function admissionOf({ users }: HandshakeOptions, { access }: InboundEnv, accounts: AccountBook | null) {
  const isOwn = users !== undefined;
  return (source: Ip): { readonly accounts: AccountBook | null } | null => {
    if (isOwn) return { accounts };
    if (!access.admits(source)) return null;
    return { accounts: access.skipsAuthentication(source) ? null : accounts };
  };
}

/** Whatever address it comes from. */
function admitsAll({ users }: HandshakeOptions, { access }: InboundEnv): boolean {
  return users !== undefined || access.admitsAll === true;
}
