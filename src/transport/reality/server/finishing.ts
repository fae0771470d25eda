/**
 * The client's part of the handshake. Until its Finished is there dest stays connected: a client that repeats the hello of
 * another one cannot go on, and what it does then is judged, answered and ended by dest itself.
 */
import { ByteQueue } from "#lib/byte-queue.ts";
import { HEADER_BYTES, MAX_SEALED_BYTES, RECORD } from "#transport/tls13/records.ts";
import type { RealityConnection } from "./server-connection.ts";

/** Records of dest, such as tickets, that are imitated before the client has finished. */
const MAX_IMITATED = 4;

/** What is said to each end. The bytes are the callee's. */
export interface EndsOfVisit {
  toClient(bytes: Buffer): void;
  toDest(bytes: Buffer): void;
}

/** What is known of a client behind something that it, or dest, has said. `dest`: it is dest's business, `giveBack` is to be called. */
export type Judgement = "more" | "finished" | "dest";

/**
 * `connection` has said its flight, and is its owner's. What the client says is the connection's once it has finished, and dest's
 * where it has not.
 */
export class Finishing {
  readonly #connection: RealityConnection;
  readonly #ends: EndsOfVisit;
  readonly #ofClient: RecordsOfClient;
  readonly #ofDest: RecordsOfDest;

  constructor(connection: RealityConnection, ends: EndsOfVisit) {
    this.#connection = connection;
    this.#ends = ends;
    this.#ofDest = new RecordsOfDest(connection);
    this.#ofClient = new RecordsOfClient(connection, (bytes) => {
      if (bytes.length > 0) ends.toDest(bytes);
    });
  }

  /** Nothing more of dest is wanted. */
  get isFull(): boolean {
    return this.#ofDest.isFull;
  }

  fromClient(bytes: Buffer): Judgement {
    const judgement = this.#ofClient.take(bytes);
    if (judgement === "finished") this.#flush();
    return judgement;
  }

  fromDest(bytes: Buffer): Judgement {
    const isImitable = this.#ofDest.take(bytes);
    this.#flush();
    return isImitable ? "more" : "dest";
  }

  #flush(): void {
    const output = this.#connection.takeOutput();
    if (output !== null) this.#ends.toClient(output);
  }

  /** Dest is told what it has not heard yet. What dest has sent and was not imitated. */
  giveBack(): Buffer {
    this.#ofClient.giveBack();
    return this.#ofDest.left;
  }
}

/**
 * What is no end of a protected record goes to dest as it comes. Such an end is what tells the real client from others, and dest
 * gets it from the others alone.
 */
class RecordsOfClient {
  readonly #connection: RealityConnection;
  readonly #tellDest: (bytes: Buffer) => void;
  readonly #arrived = new ByteQueue();
  /** Of `#arrived`, at its front: dest has them. */
  #toldBytes = 0;
  /** Ends of protected records. */
  readonly #kept: Buffer[] = [];
  /** Of the piece that is looked at: its ChangeCipherSpec records, for dest. */
  #changes: Buffer[] = [];

  constructor(connection: RealityConnection, tellDest: (bytes: Buffer) => void) {
    this.#connection = connection;
    this.#tellDest = tellDest;
  }

  /** `finished`: the connection has what is left; `dest`: `giveBack` has it. Dest hears nothing of the piece that finishes. */
  take(bytes: Buffer): Judgement {
    this.#arrived.push(bytes);
    const verdict = this.#judge();
    if (verdict !== "finished") this.#tellDest(Buffer.concat(this.#changes));
    this.#changes = [];
    if (verdict === "more") this.#tellRest();
    return verdict;
  }

  #judge(): Judgement {
    for (;;) {
      const header = this.#arrived.peek(HEADER_BYTES);
      if (header !== null && !mayBeOurs(header)) return "dest";
      const record = header === null ? null : this.#arrived.take(HEADER_BYTES + header.readUInt16BE(3));
      if (record === null) return "more";
      if (!this.#isGood(record)) return "dest";
      if (!this.#connection.isSecure) continue;
      this.#connection.feed(this.#arrived.takeAll());
      return "finished";
    }
  }

  #isGood(record: Buffer): boolean {
    const rest = record.subarray(this.#toldBytes);
    this.#toldBytes = 0;
    if (record[0] === RECORD.changeCipherSpec) {
      this.#changes.push(rest); // without meaning; dest knows how many it takes
      return true;
    }
    this.#kept.push(rest);
    try {
      this.#connection.feed(record);
      this.#connection.read();
      return true;
    } catch {
      return false;
    }
  }

  #tellRest(): void {
    const rest = this.#arrived.peekUpTo(this.#arrived.length);
    this.#tellDest(rest.subarray(this.#toldBytes));
    this.#toldBytes = rest.length;
  }

  /** Dest gets what it has not yet. */
  giveBack(): void {
    for (const bytes of this.#kept.splice(0)) this.#tellDest(bytes);
    this.#tellRest();
  }
}

/** A ChangeCipherSpec, or a protected record. */
function mayBeOurs(header: Buffer): boolean {
  const [type, size] = [header.readUInt8(0), header.readUInt16BE(3)];
  if (type === RECORD.changeCipherSpec) return size === 1;
  return type === RECORD.applicationData && size <= MAX_SEALED_BYTES;
}

/** For each whole record one of the same length goes to the client. */
class RecordsOfDest {
  readonly #connection: RealityConnection;
  readonly #arrived = new ByteQueue();
  #imitated = 0;

  constructor(connection: RealityConnection) {
    this.#connection = connection;
  }

  /** No more are imitated. */
  get isFull(): boolean {
    return this.#imitated >= MAX_IMITATED;
  }

  get left(): Buffer {
    return this.#arrived.takeAll();
  }

  /** False: such a record cannot be imitated. */
  take(bytes: Buffer): boolean {
    this.#arrived.push(bytes);
    while (!this.isFull) {
      const header = this.#arrived.peek(HEADER_BYTES);
      if (header === null) return true;
      const size = header.readUInt16BE(3);
      if (header.readUInt8(0) !== RECORD.applicationData || size > MAX_SEALED_BYTES) return false;
      if (this.#arrived.take(HEADER_BYTES + size) === null) return true;
      this.#imitated++;
      this.#connection.imitate(HEADER_BYTES + size);
    }
    return true;
  }
}
