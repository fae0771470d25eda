/** One client of a listener: nothing is done for it before it has shown who it is. */
import { timingSafeEqual } from "node:crypto";
import { AuthError, ProtocolError } from "#core/errors.ts";
import { type ConnectionEnds, guardErrors } from "#net/listen/accept.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import { isMux } from "#protocols/mux/inbound.ts";
import { versionOf } from "#protocols/udp-over-tcp/index.ts";
import type { MuxServerOptions } from "#transport/mux/fields.ts";
import type { ServedClient, ServedEvents, ServedStream } from "#transport/quic/server/served.ts";
import { CommandBytes } from "./command-bytes.ts";
import type { PacketWay } from "./packet-channel.ts";
import { newServerAssociations, type ServerAssociations } from "./server-associations.ts";
import type { TuicUser, TuicUsers } from "./users.ts";
import * as wire from "./wire.ts";

const REQUEST_TIMEOUT_MS = 30_000;
/** Of commands and streams before the client is known. */
const MOST_HELD = 1024;
/**
 * Of commands that are not whole, or wait until the client is known: what is read of them no window bounds. Further ones are
 * dropped, as packets are on any network, but for those as short as an authentication.
 */
const MOST_COMMAND_BYTES = { unknown: 128 * 1024, known: 16 * 1024 * 1024 };
/** Datagrams have no window: further ones are dropped. */
const MOST_HELD_DATAGRAMS = 32;
/** Where packets have streams: so many may be open before further ones are dropped. */
const MOST_OPEN_STREAMS = 2048;

export interface ServerSessionOptions {
  /** Those in force. */
  readonly users: () => TuicUsers;
  /** Throws `AuthError` where the user of the table was taken away this moment. */
  readonly admit: (user: TuicUser, table: TuicUsers, ends: ConnectionEnds) => AuthenticatedConnection;
  readonly authenticationMs: number;
  /** What a client may send ahead once it is known. */
  readonly windowBytes: number;
  readonly mostPacketBytes: number;
  readonly mux: MuxServerOptions | undefined;
}

/** What a client has shown, and whether it is right. */
interface Shown {
  readonly user: TuicUser | null;
  readonly table: TuicUsers;
  readonly isRight: boolean;
}

interface Known {
  readonly connection: AuthenticatedConnection;
  readonly associations: ServerAssociations;
}

export class ServerSession implements ServedEvents {
  readonly #client: ServedClient;
  readonly #options: ServerSessionOptions;
  readonly #native: PacketWay;
  readonly #byStreams: PacketWay;
  #known: Known | null = null;
  #held: ((known: Known) => void)[] = [];
  #heldDatagrams = 0;
  #heldBytes = 0;
  /** Of commands that are not whole. */
  #unfinishedBytes = 0;

  constructor(client: ServedClient, options: ServerSessionOptions) {
    this.#client = client;
    this.#options = options;
    const { connection, closed } = client;
    this.#native = {
      get mostBytes() {
        return Math.min(options.mostPacketBytes, connection.maxDatagramBytes);
      },
      send: (packet) => connection.sendDatagram(packet),
    };
    this.#byStreams = { mostBytes: wire.MOST_PACKET_BYTES, send: (packet) => this.#sendByStream(packet) };
    const late = setTimeout(() => {
      if (this.#known === null) this.#end(wire.END.late);
    }, options.authenticationMs).unref();
    void closed.then(() => {
      clearTimeout(late);
      this.#held = [];
      this.#known?.associations.close();
    });
  }

  #end(code: number): void {
    this.#client.connection.close(code, "");
  }

  #sendByStream(packet: Uint8Array): void {
    const { connection } = this.#client;
    const stream = connection.openStreams < MOST_OPEN_STREAMS ? connection.open(false) : null;
    stream?.on("error", () => {});
    stream?.end(packet);
  }

  onStream(stream: ServedStream): void {
    guardErrors(stream);
    if (stream.send === null) this.#readCommand(stream);
    else this.#whenKnown(({ connection }) => void this.#serve(stream, connection));
  }

  onDatagram(payload: Uint8Array): void {
    if (this.#known === null && (++this.#heldDatagrams > MOST_HELD_DATAGRAMS || this.#hasTooMuch)) return;
    try {
      this.#take(this.#known === null ? new Uint8Array(payload) : payload, this.#native);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error; // what cannot be read is dropped, as on any network
    }
  }

  /** Commands of streams of one direction end with their stream. */
  #readCommand(stream: ServedStream): void {
    const bytes = new CommandBytes();
    stream.on("data", (piece: Buffer) => {
      this.#unfinishedBytes -= bytes.heldBytes;
      if (!bytes.push(piece)) return this.#end(wire.END.protocol);
      this.#unfinishedBytes += bytes.heldBytes;
      if (!bytes.isShort && this.#hasTooMuch) stream.destroy();
    });
    stream.on("close", () => (this.#unfinishedBytes -= bytes.heldBytes));
    stream.on("end", () => {
      try {
        this.#take(bytes.whole, this.#byStreams);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.#end(wire.END.protocol);
      }
    });
  }

  get #hasTooMuch(): boolean {
    const most = this.#known === null ? MOST_COMMAND_BYTES.unknown : MOST_COMMAND_BYTES.known;
    return this.#unfinishedBytes + this.#heldBytes > most;
  }

  /** Throws `ProtocolError`. The bytes are kept where the client is not known yet. */
  #take(bytes: Uint8Array, way: PacketWay): void {
    const command = wire.commandOf(bytes);
    if (command === wire.COMMAND.authenticate) return this.#authenticate(bytes);
    if (command === wire.COMMAND.heartbeat) return;
    if (command === wire.COMMAND.dissociate) {
      const association = wire.decodeDissociate(bytes);
      return this.#whenKnown(({ associations }) => associations.end(association));
    }
    const packet = wire.decodePacket(bytes);
    if (packet === null) return this.#end(wire.END.command);
    if (this.#known === null) this.#heldBytes += bytes.length;
    this.#whenKnown(({ associations }) => associations.take(packet.association, { packet, way }));
  }

  /** At once where the client is known. */
  #whenKnown(run: (known: Known) => void): void {
    if (this.#known !== null) return run(this.#known);
    if (this.#held.push(run) > MOST_HELD) this.#end(wire.END.protocol);
  }

  /** The first time counts. */
  #authenticate(bytes: Uint8Array): void {
    const { uuid, token } = wire.decodeAuthenticate(bytes);
    if (this.#known !== null) return;
    const table = this.#options.users();
    const user = table.find(uuid);
    const { connection } = this.#client;
    // An unknown uuid takes as much time as a wrong password.
    const expected = connection.exportKey(uuid, Buffer.from(user?.password ?? " "), wire.TOKEN_BYTES);
    const check = (key: Buffer): void => this.#check({ user, table, isRight: timingSafeEqual(key, token) });
    if (!(expected instanceof Promise)) return check(expected);
    expected.then(check, () => this.#end(wire.END.refused));
  }

  /** The first one counts whose key has come. */
  #check({ user, table, isRight }: Shown): void {
    if (this.#known !== null) return;
    if (user === null || !isRight) return this.#end(wire.END.refused);
    this.#admit(user, table);
  }

  #admit(user: TuicUser, table: TuicUsers): void {
    const client = this.#client;
    const ends = {
      get source() {
        return client.peer;
      },
      local: client.local,
    };
    try {
      this.#open(this.#options.admit(user, table, ends));
    } catch (error) {
      if (!(error instanceof AuthError)) throw error;
      this.#end(wire.END.refused); // the user was taken away this moment
    }
  }

  #open(connection: AuthenticatedConnection): void {
    const held = connection.hold(() => this.#end(wire.END.refused));
    void this.#client.closed.then(() => held[Symbol.dispose]());
    this.#client.settle();
    this.#client.connection.widen(this.#options.windowBytes);
    const known = { connection, associations: newServerAssociations(connection.onFlow) };
    this.#known = known;
    this.#heldBytes = 0;
    for (const run of this.#held.splice(0)) run(known);
  }

  async #serve(stream: ServedStream, connection: AuthenticatedConnection): Promise<void> {
    try {
      const destination = await readHandshake(stream, wire.takeConnect, REQUEST_TIMEOUT_MS);
      const version = versionOf(destination);
      if (version !== null) connection.serveUdpOverTcp(stream, version);
      else if (isMux(destination)) connection.serveMux(stream, this.#options.mux, connection.onSilentStream);
      else connection.onSilentStream(stream, destination);
    } catch {
      stream.destroy(); // it says nothing that could be read, or has gone
    }
  }
}
