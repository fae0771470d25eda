import type { Duplex } from "node:stream";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import type { InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { WireStart } from "#core/wire-state.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { continueWith } from "#lib/continue-with.ts";
import { type ConnectionEnds, guardErrors } from "#net/listen/accept.ts";
import type { HandshakeStep } from "#net/listen/read-handshake.ts";
import { readFirst, streamUnread } from "#net/listen/first-bytes.ts";
import type { ClientStream } from "#net/listen/opened-session.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import { UserInbound } from "#protocols/managed/user-inbound.ts";
import { isMux } from "#protocols/mux/inbound.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import type { Secured } from "#transport/security.ts";
import { openTransportServer } from "#transport/server.ts";
import { beginAnswer, beginPaddedAnswer } from "./begin.ts";
import { ServerCodec } from "./codec.ts";
import { EncryptionServer } from "./encryption/server.ts";
import { readServerEncryption, type ServerEncryption } from "./encryption/settings.ts";
import { TicketBook } from "./encryption/tickets.ts";
import { chooseFallback, serveFallback } from "#protocols/shared/fallback.ts";
import type { InboundOptions } from "./options.ts";
import {
  PACKET_ADDR_HOST,
  packetAddrFraming,
  peekPacketAddr,
  plainFraming,
} from "#protocols/shared/datagram-framing.ts";
import {
  decodeRequest,
  ANSWER,
  COMMAND_MUX,
  COMMAND_TCP,
  ID_BYTES,
  MOST_REQUEST_BYTES,
  VERSION,
  VISION,
  type VlessRequest,
} from "./wire.ts";
import { type UserTable, userTable, type VlessUser } from "./users.ts";
import { plainUserId } from "#protocols/shared/user-id.ts";
import { VisionStream } from "./vision-stream.ts";

const HANDSHAKE_TIMEOUT_MS = 60_000;
/** What a server must have seen before it decides: version, id, length of addons. */
const DECIDED_BYTES = ID_BYTES + 2;

/** Throws `ConfigError`: no users in order, nothing that hides the traffic and no `allow-insecure`, bad TLS keys. */
export async function openInbound(options: InboundOptions, env: InboundEnv): Promise<ManagedInbound> {
  const { name } = env;
  const tableOf = (users: readonly User[]) => userTable(users, `listener ${name}`);
  const users = options.users.map(({ username, uuid, flow }, index) => ({
    id: username ?? `${index}`,
    credential: plainUserId(uuid),
    flow,
  }));
  const encryption = openEncryption(options, env);
  const shell = new UserInbound(env, {
    type: "Vless",
    users: tableOf(users),
    written: users,
    tableOf,
    changeTable: (table, change) => table.changed(change, `listener ${name}`),
    writtenUsers: (table) => table.written(),
  });
  const bypassable = () => shell.users.usesVision;
  const onGreeting = (
    carried: Secured,
    greeting: Greeting,
    table: ReturnType<typeof tableOf>,
    ends: ConnectionEnds,
  ): void | Promise<void> => {
    if ("user" in greeting) {
      checkFlow(greeting.user, greeting.request, carried);
      const connection = shell.admit(greeting.user.name, table, ends);
      return serve(carried, greeting, connection, options["mux-option"]);
    }
    const { serverName, alpn } = carried;
    const fallback = chooseFallback(options.fallbacks, { serverName, alpn, first: greeting.first });
    if (fallback === null) throw new ProtocolError(greeting.refused);
    return serveFallback(streamUnread(carried), fallback, ends, env.dialer);
  };
  return await shell.listen(await openTransportServer(options, { ...env, bypassable }), {
    mayBeBare: options["allow-insecure"] || encryption !== null,
    silenceMs: null,
    readsFirst: encryption === null,
    authenticate(secured, ends) {
      const table = shell.users;
      const authenticateBy = (carried: Secured): void | Promise<void> => {
        const step = greetingStep(table, options.fallbacks.length > 0);
        const read = readFirst(carried, step, HANDSHAKE_TIMEOUT_MS);
        return continueWith(read, (greeting) => onGreeting(carried, greeting, table, ends));
      };
      return encryption === null
        ? authenticateBy(secured)
        : decrypted(secured, encryption, table.usesVision).then(authenticateBy);
    },
  });
}

/** Throws `ConfigError`. */
function openEncryption(
  { decryption, fallbacks }: InboundOptions,
  { name, memory }: InboundEnv,
): EncryptionServer | null {
  const settings = readServerEncryption(decryption) as ServerEncryption | null;
  if (settings === null) return null;
  // A peer that is not let in sees nothing but its own bytes: there is nothing to hand to a web server.
  if (fallbacks.length > 0)
    throw new ConfigError(`listener ${name}: decryption and fallbacks exclude each other`);
  return new EncryptionServer(settings, memory?.of(TicketBook) ?? new TicketBook());
}

async function decrypted(
  secured: Secured,
  encryption: EncryptionServer,
  mayLeave: boolean,
): Promise<Secured> {
  const encrypted = await encryption.accept(secured.stream, HANDSHAKE_TIMEOUT_MS, mayLeave);
  guardErrors(encrypted.stream);
  return { alpn: secured.alpn, serverName: secured.serverName, ...encrypted };
}

interface Known {
  readonly user: VlessUser;
  readonly request: VlessRequest;
}
type Greeting = Known | { readonly refused: string; readonly first: Buffer };

function serve(
  carried: Secured,
  { user, request }: Known,
  connection: AuthenticatedConnection,
  mux: InboundOptions["mux-option"],
): void | Promise<void> {
  const { command, destination } = request;
  const opened = openedBy(carried, user, request);
  if (command === COMMAND_TCP && destination !== null && !isMux(destination))
    return connection.serve(carried, opened, destination);
  if (command === COMMAND_TCP && destination !== null) return connection.serveMuxClient(carried, opened, mux);
  const stream = connection.openStream(carried, opened);
  if (command === COMMAND_MUX || destination === null) connection.serveMuxCool(stream, user.flow === VISION);
  else return serveDatagrams(stream, destination, connection.onFlow);
}

const NOTHING = new Uint8Array(0);

const WITHOUT_FLOW: ClientStream = {
  open: (below) => new CodecStream(below, new ServerCodec()),
  wire: { begin: beginAnswer },
  ahead: (shown) => shown,
};

function openedBy(carried: Secured, user: VlessUser, { flow }: VlessRequest): ClientStream {
  if (flow !== VISION) return WITHOUT_FLOW;
  const { id } = user;
  const open = (stream: Duplex): Duplex => {
    const { serverName, alpn, bypass } = carried;
    if (bypass === null) return stream.destroy(); // it has gone meanwhile
    const secured = { stream, serverName, alpn, bypass };
    return new VisionStream({ secured, id, opening: ANSWER, answer: null, openAfterMs: null });
  };
  const begin = (): WireStart => beginPaddedAnswer(new Uint8Array(id));
  return { open, wire: { begin }, ahead: () => NOTHING }; // it is padded
}

/** Takes nothing but the request; what is refused stays where it is, for the fallback. */
function greetingStep(users: UserTable, mayFallBack: boolean): HandshakeStep<Greeting> {
  return (arrived) => {
    const bytes = arrived.peekUpTo(MOST_REQUEST_BYTES);
    const refuse = (refused: string) => ({ refused, first: Buffer.from(bytes) });
    // With a web server behind it, what cannot become a request is forwarded at once. Without one the time of the decision
    // must not show, so it takes as long as for a wrong id.
    if (mayFallBack && bytes[0] !== VERSION) return refuse("not VLESS version 0");
    if (bytes.length < DECIDED_BYTES) return null;
    if (bytes[0] !== VERSION) return refuse("not VLESS version 0");
    const user = users.find(bytes.subarray(1, 1 + ID_BYTES));
    if (user === null) return refuse("an unknown user");
    const decoded = decodeRequest(bytes);
    if (decoded === null) return null;
    arrived.skip(decoded.size);
    return { user, request: decoded.value };
  };
}

/** Throws `ProtocolError` where the request's flow is not the user's. */
function checkFlow(user: VlessUser, { flow, command }: VlessRequest, secured: Secured): void {
  if (flow !== "" && flow !== VISION) throw new ProtocolError("an unknown flow");
  if (flow === VISION && user.flow !== VISION)
    throw new ProtocolError(`user ${user.name} has no flow, the request has one`);
  if (flow === VISION && !(secured.mayBypass ?? secured.bypass !== null))
    throw new ProtocolError("a flow needs decryption, or TLS 1.3 directly over TCP");
  if (flow === "" && user.flow === VISION && command === COMMAND_TCP)
    throw new ProtocolError(`user ${user.name} has a flow, the request has none`);
}

async function serveDatagrams(
  stream: Duplex,
  destination: Destination,
  onFlow: (flow: DatagramFlow, destination: Destination) => void,
): Promise<void> {
  if (destination.host !== PACKET_ADDR_HOST)
    return onFlow(new StreamFlow(stream, plainFraming(destination, "server")), destination);
  let first: Destination;
  {
    using reader = new ByteReader(stream, { timeoutMs: HANDSHAKE_TIMEOUT_MS, maxBytes: 1 << 20 });
    first = await reader.take((bytes) => {
      const value = peekPacketAddr(bytes);
      return value === null ? null : { value, size: 0 };
    });
  }
  onFlow(new StreamFlow(stream, packetAddrFraming), first);
}
