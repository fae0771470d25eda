/** Opens clients' datagrams and seals the replies. */
import { randomBytes } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import { type Datagram, type Endpoint, endpointText } from "#core/session.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { itemAt } from "#lib/at.ts";
import type { Aead } from "#protocols/crypto/aead.ts";
import type { PacketWindow } from "#protocols/crypto/packet-window.ts";
import type { PacketWindows } from "#protocols/crypto/packet-windows.ts";
import { addressed, packetPadding } from "./client-packets.ts";
import type { CipherMemory } from "./memory.ts";
import type { Method } from "./methods.ts";
import { openPacket004, sealPacket004 } from "./packet004.ts";
import {
  bodyAead,
  decodeBody,
  encodeBody,
  openPacket022,
  sealPacket022,
  SESSION_ID_BYTES,
} from "./packet022.ts";
import type { ServerKeys, UserKey } from "./server-keys.ts";
import { checkCovered } from "./sip022.ts";

/** One client socket, or with the 2022 edition one association, which may move to another address. */
export interface PeerSession {
  readonly key: string;
  readonly user: string | null;
  /** Keeps what is known of its packets until it is disposed of, and as long after it as a packet may come again. */
  remember?(): Disposable;
  seal(item: Datagram): Buffer;
}

export interface OpenedRequest {
  readonly session: PeerSession;
  readonly item: Datagram;
}

/** `find` knows the sessions that are kept; one it does not know is made. Null: drop the packet, answer nothing. */
export function openRequest(
  keys: ServerKeys,
  packet: Buffer,
  source: Endpoint,
  find: (key: string) => PeerSession | undefined,
  nowMs: () => number,
  memory: CipherMemory,
): OpenedRequest | null {
  if (keys.method.edition === "2022") return open022(keys, packet, find, nowMs, memory);
  const open = (entry: UserKey): OpenedRequest | null => {
    const item = addressed(openPacket004(keys.method, entry.key, packet));
    if (item === null) return null;
    const key = `${endpointText(source)} ${entry.user ?? ""}`;
    return { session: find(key) ?? session004(keys.method, entry, key), item };
  };
  // Where a key proves nothing there is one, and it costs nothing.
  return keys.method.edition === "sip004"
    ? memory.packetUsers.find(keys, source, open)
    : open(itemAt(keys.candidates, 0));
}

function session004(method: Method, { user, key: master }: UserKey, key: string): PeerSession {
  return {
    key,
    user,
    seal({ payload, destination }) {
      return sealPacket004(method, master, Buffer.concat([encodeSocksAddress(destination, "ip"), payload]));
    },
  };
}

function open022(
  keys: ServerKeys,
  packet: Buffer,
  find: (key: string) => PeerSession | undefined,
  nowMs: () => number,
  memory: CipherMemory,
): OpenedRequest | null {
  const { method, identity } = keys;
  const [only] = keys.candidates;
  const headerKey = identity ?? only?.key;
  if (headerKey === undefined) return null;
  let owner = only;
  const known = (id: string) => {
    const session = find(id);
    return session instanceof Session022 ? session : undefined;
  };
  const opened = openPacket022(
    method,
    headerKey,
    identity !== null,
    ({ bytes, sessionId }, name) => {
      if (name !== null) owner = keys.byName.get(name);
      if (owner === undefined) return null;
      const session = known(sessionId);
      if (session !== undefined && session.user === owner.user) return session.aead;
      return bodyAead(method, owner.key, bytes.subarray(0, SESSION_ID_BYTES));
    },
    packet,
  );
  if (opened === null || owner === undefined) return null;
  const { bytes, sessionId, packetId } = opened.header;
  const session =
    known(sessionId) ??
    new Session022(method, owner, Buffer.from(bytes.subarray(0, SESSION_ID_BYTES)), nowMs, memory.windows);
  if (session.user !== owner.user) return null; // an id that another user has: not worth a second session
  try {
    const item = decodeBody(opened.body, null, nowMs());
    checkCovered(memory.salts2022, opened.body, 1, nowMs());
    return session.window.accept(packetId) ? { session, item } : null;
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

class Session022 implements PeerSession {
  readonly key: string;
  readonly user: string | null;
  readonly aead: Aead;
  readonly window: PacketWindow;
  readonly #windows: PacketWindows;
  readonly #method: Method;
  readonly #psk: Buffer;
  readonly #clientSession: Buffer;
  readonly #replySession = randomBytes(SESSION_ID_BYTES);
  readonly #replyAead: Aead;
  readonly #nowMs: () => number;
  #nextPacketId = 0n;

  constructor(
    method: Method,
    { user, key }: UserKey,
    clientSession: Buffer,
    nowMs: () => number,
    windows: PacketWindows,
  ) {
    this.#nowMs = nowMs;
    this.key = clientSession.toString("hex");
    this.user = user;
    this.#method = method;
    this.#psk = key;
    this.#clientSession = clientSession;
    this.aead = bodyAead(method, key, clientSession);
    this.#windows = windows;
    this.window = windows.of(this.#windowKey);
    this.#replyAead = bodyAead(method, key, this.#replySession);
  }

  /** Ids are drawn by clients, so one of another user may be the same. */
  get #windowKey(): string {
    return `${this.key} ${this.#psk.toString("latin1")}`;
  }

  remember(): Disposable {
    return this.#windows.hold(this.#windowKey, this.window);
  }

  /** The separate header is sealed with the user's own key, not with the server's. */
  seal({ payload, destination }: Datagram): Buffer {
    const header = Buffer.concat([this.#replySession, Buffer.alloc(8)]);
    header.writeBigUInt64BE(this.#nextPacketId++, SESSION_ID_BYTES);
    const body = encodeBody({
      nowMs: this.#nowMs(),
      clientSession: this.#clientSession,
      padding: packetPadding(destination.port),
      destination,
      payload,
    });
    return sealPacket022(this.#method, [this.#psk], this.#replyAead, header, body);
  }
}
