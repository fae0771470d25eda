/** The connection ids of both sides (RFC 9000 §5.1): what the peer calls us, and what we call the peer. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import type { ControlQueue } from "./control-queue.ts";
import { CONNECTION_ID_LIMIT_ERROR, PROTOCOL_VIOLATION, QuicFault } from "./fault.ts";
import { FRAME, type NewConnectionId } from "./wire/frames.ts";
import { CID_BYTES } from "./wire/header.ts";
import { RESET_TOKEN_BYTES } from "./wire/transport-parameters.ts";

/** Of the peer's ids that we keep, as our transport parameter says. */
const MOST_PEER_IDS = 4;
/** That may wait to be given back. */
const MOST_RETIRED = 32;
/** Those that we give out at a time. */
const OWN_IDS = 2;
const VARINT = 8;

interface PeerId {
  readonly sequence: number;
  readonly id: Uint8Array;
  readonly resetToken: Uint8Array | null;
}

/** What we call the peer. */
export class PeerIds {
  readonly #controls: ControlQueue;
  #ids: PeerId[];
  #retiredBelow = 0;
  #retiring = 0;

  constructor(controls: ControlQueue, id: Uint8Array) {
    this.#controls = controls;
    this.#ids = [{ sequence: 0, id, resetToken: null }];
  }

  get current(): Uint8Array {
    return this.#ids[0]?.id ?? new Uint8Array(0);
  }

  /** The peer has chosen its own first id. */
  adopt(id: Uint8Array): void {
    this.#ids = [{ sequence: 0, id, resetToken: null }];
  }

  /** Calls it by another one from now on, where there is one: others on the way must not see that it is the same peer. */
  change(): void {
    const [first, ...others] = this.#ids;
    if (first === undefined || others.length === 0) return;
    this.#ids = others;
    this.#giveBack(first.sequence);
  }

  /** From its transport parameters. */
  setResetToken(resetToken: Uint8Array): void {
    const [first, ...others] = this.#ids;
    if (first !== undefined) this.#ids = [{ ...first, resetToken }, ...others];
  }

  /** Throws `QuicFault`. */
  add({ sequence, retirePriorTo, id, resetToken }: NewConnectionId): void {
    if (this.#ids.some((one) => one.sequence === sequence && !equal(one.id, id)))
      throw new QuicFault(PROTOCOL_VIOLATION, "two connection ids with one number");
    if (this.#ids.some((one) => one.sequence === sequence)) return;
    if (sequence < this.#retiredBelow) return this.#giveBack(sequence);
    this.#ids.push({ sequence, id: new Uint8Array(id), resetToken: new Uint8Array(resetToken) });
    this.#ids.sort((one, other) => one.sequence - other.sequence);
    if (retirePriorTo > this.#retiredBelow) {
      this.#retiredBelow = retirePriorTo;
      for (const one of this.#ids) if (one.sequence < retirePriorTo) this.#giveBack(one.sequence);
      this.#ids = this.#ids.filter((one) => one.sequence >= retirePriorTo);
    }
    if (this.#ids.length > MOST_PEER_IDS)
      throw new QuicFault(CONNECTION_ID_LIMIT_ERROR, "more connection ids than were asked for");
  }

  #giveBack(sequence: number): void {
    if (++this.#retiring > MOST_RETIRED)
      throw new QuicFault(
        CONNECTION_ID_LIMIT_ERROR,
        "connection ids come faster than they can be given back",
      );
    this.#controls.push(
      this.#controls.make(
        1 + VARINT,
        (out) => {
          out.byte(FRAME.retireConnectionId);
          out.varint(sequence);
        },
        undefined,
        () => void this.#retiring--,
      ),
    );
  }

  /** Does a datagram that cannot be opened end with a token of the peer: has it lost the connection (RFC 9000 §10.3)? */
  isReset(datagram: Uint8Array): boolean {
    if (datagram.length < 1 + CID_BYTES + RESET_TOKEN_BYTES) return false;
    const tail = datagram.subarray(datagram.length - RESET_TOKEN_BYTES);
    return this.#ids.some(({ resetToken }) => resetToken !== null && timingSafeEqual(resetToken, tail));
  }
}

/** What the peer calls us. */
export class OwnIds {
  readonly first: Uint8Array;
  readonly #controls: ControlQueue;
  readonly #tokenOf: ((id: Uint8Array) => Uint8Array) | null;
  readonly #onChange: (id: Uint8Array, isGiven: boolean) => void;
  readonly #makeId: () => Uint8Array;
  readonly #given = new Map<number, Uint8Array>();
  #next = 1;

  /** `tokenOf`: of an id's stateless reset; null: a random one, for the side that sends none. */
  constructor(
    controls: ControlQueue,
    tokenOf: ((id: Uint8Array) => Uint8Array) | null,
    onChange: (id: Uint8Array, isGiven: boolean) => void,
    makeId = (): Uint8Array => new Uint8Array(randomBytes(CID_BYTES)),
  ) {
    this.#controls = controls;
    this.#tokenOf = tokenOf;
    this.#makeId = makeId;
    this.#onChange = onChange;
    this.first = makeId();
    this.#given.set(0, this.first);
    onChange(this.first, true);
  }

  has(id: Uint8Array): boolean {
    for (const one of this.#given.values()) if (equal(one, id)) return true;
    return false;
  }

  /** The handshake is done: gives out as many as there are to be, and as the peer keeps. */
  fill(peerKeeps: number): void {
    while (this.#given.size < Math.min(OWN_IDS, peerKeeps)) this.#give();
  }

  #give(): void {
    const sequence = this.#next++;
    const id = this.#makeId();
    const token = this.#tokenOf?.(id) ?? randomBytes(RESET_TOKEN_BYTES);
    this.#given.set(sequence, id);
    this.#onChange(id, true);
    this.#controls.push(
      this.#controls.make(
        2 + 2 * VARINT + CID_BYTES + RESET_TOKEN_BYTES,
        (out) => {
          out.byte(FRAME.newConnectionId);
          out.varint(sequence);
          out.varint(0);
          out.byte(id.length);
          out.put(id);
          out.put(token);
        },
        () => !this.#given.has(sequence),
      ),
    );
  }

  /** The peer uses it no more. Throws `QuicFault`. */
  retire(sequence: number): void {
    if (sequence >= this.#next) throw new QuicFault(PROTOCOL_VIOLATION, "a connection id that was not given");
    const id = this.#given.get(sequence);
    if (id === undefined) return;
    this.#given.delete(sequence);
    this.#onChange(id, false);
    this.#give();
  }

  /** The connection is over. */
  clear(): void {
    for (const id of this.#given.values()) this.#onChange(id, false);
    this.#given.clear();
  }
}

function equal(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
