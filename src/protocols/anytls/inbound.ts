import type { Duplex } from "node:stream";
import { AuthError } from "#core/errors.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { Destination } from "#core/session.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { continueWith } from "#lib/continue-with.ts";
import { readFirst, streamUnread } from "#net/listen/first-bytes.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import { PasswordTable } from "#protocols/managed/password-table.ts";
import { UserInbound } from "#protocols/managed/user-inbound.ts";
import { versionOf } from "#protocols/udp-over-tcp/index.ts";
import { chooseFallback, serveFallback } from "#protocols/shared/fallback.ts";
import { openTransportServer } from "#transport/server.ts";
import type { InboundOptions } from "./options.ts";
import { DEFAULT_SCHEME, type PaddingScheme, parseScheme } from "./padding.ts";
import { keepSession } from "./kept-session.ts";
import { ServerSession, type ServerStream } from "./server-session.ts";
import { HASH_BYTES, passwordHash } from "./wire.ts";

const PREAMBLE_TIMEOUT_MS = 30_000;

/** Throws `ConfigError`: users with equal passwords, or neither TLS nor `allow-insecure`. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const { name } = env;
  const noUsers = PasswordTable.empty(passwordHash); // all tables of the listener share its key, so that users who stay keep their identity
  const tableOf = (users: readonly User[]) => noUsers.with(users, `listener ${name}`);
  const users = Object.entries(options.users).map(([id, credential]) => ({ id, credential, flow: null }));
  const shell = new UserInbound(env, {
    type: "AnyTLS",
    users: tableOf(users),
    written: users,
    tableOf,
    changeTable: (table, change) => table.changed(change, `listener ${name}`),
  });
  const text = options["padding-scheme"];
  const scheme = text === "" ? DEFAULT_SCHEME : parseScheme(Buffer.from(text));
  return await shell.listen(await openTransportServer(options, env), {
    mayBeBare: options["allow-insecure"],
    silenceMs: null,
    readsFirst: true,
    authenticate(client, ends) {
      const table = shell.users;
      const step = (arrived: ByteQueue) => takePreamble(arrived, table, options.fallbacks.length > 0);
      return continueWith(readFirst(client, step, PREAMBLE_TIMEOUT_MS), (user) => {
        if (!(user instanceof Unauthenticated)) {
          const connection = shell.admit(user, table, ends);
          if (!keepSession(client, scheme, connection)) serve(client.stream, scheme, connection);
          return;
        }
        const { alpn, serverName } = client;
        const fallback = chooseFallback(options.fallbacks, { alpn, serverName, first: user.first });
        if (fallback === null) throw new AuthError("a password that no user has");
        return serveFallback(streamUnread(client), fallback, ends, env.dialer);
      });
    },
  });
}

/**
 * A method, a target and what ends it: the path by which a fallback is chosen is there, and a web server may have enough to
 * answer. The first bytes of a hash look so once in some thirty million users, and they come with the others.
 */
const REQUEST_LINE = /^[A-Z-]{3,16} [\x21-\x7e]+[ \r\n]/;

/**
 * Takes the preamble of a user. Of an unknown client it takes nothing, so that a fallback sees all bytes. A request may be
 * shorter than a hash. Other bytes may be the beginning of a hash: comparing them early would let a client guess a hash
 * byte by byte.
 */
function takePreamble(
  arrived: ByteQueue,
  users: PasswordTable,
  mayFallBack: boolean,
): string | Unauthenticated | null {
  const hash = arrived.peek(HASH_BYTES);
  const unauthenticated = (): Unauthenticated =>
    new Unauthenticated(Buffer.from(arrived.peekUpTo(arrived.length)));
  if (hash === null) {
    const isRequest = mayFallBack && REQUEST_LINE.test(arrived.peekUpTo(arrived.length).toString("latin1"));
    return isRequest ? unauthenticated() : null;
  }
  const user = users.find(hash);
  if (user === null) return unauthenticated();
  const head = arrived.peek(HASH_BYTES + 2);
  if (head === null) return null;
  const size = head.length + head.readUInt16BE(HASH_BYTES);
  return arrived.take(size) === null ? null : user;
}

function serve(wire: Duplex, scheme: PaddingScheme, connection: AuthenticatedConnection): void {
  const session = new ServerSession(wire, {
    scheme,
    onStream: (stream, destination) => acceptStream(stream, destination, connection),
    onClosed: () => held[Symbol.dispose](),
  });
  const held = connection.hold(() => session.close(new AuthError("the user was taken away")));
}

function acceptStream(
  stream: ServerStream,
  destination: Destination,
  connection: AuthenticatedConnection,
): void {
  const version = versionOf(destination);
  if (version === null) return connection.onStream(stream, destination, (failure) => stream.answer(failure));
  stream.answer(null);
  connection.serveUdpOverTcp(stream, version);
}

/** A client without a known password, and the bytes that it has sent so far. */
class Unauthenticated {
  readonly first: Buffer;
  constructor(first: Buffer) {
    this.first = first;
  }
}
