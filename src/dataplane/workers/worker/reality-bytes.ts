import { BROKEN } from "#platform/linux/ssl.ts";
import { EAGAIN } from "#platform/linux/relay-calls.ts";
import type { RealityConnection } from "#transport/reality/server/server-connection.ts";
import { HEADER_BYTES, RECORD } from "#transport/tls13/records.ts";
import { REQUEST_BYTES } from "#dataplane/workers/shared/request-memory.ts";
import { LEFT } from "#dataplane/workers/shared/opcodes.ts";
import { encodeShown } from "#dataplane/workers/shared/shown-records.ts";
import { CLIENT } from "#dataplane/workers/shared/sides.ts";
import type { LeftClient } from "#dataplane/workers/shared/worker-data.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";
import { type ClientBytes, FOR_MAIN } from "./client-bytes.ts";
import type { PendingOwner, RequestingTask } from "./pending-owner.ts";

const NOTHING = Buffer.alloc(0);

/** Of a client whose handshake was done here. */
export interface RealityClient {
  readonly connection: RealityConnection;
  readonly suite: number;
  /** As `ShownRecords` has them. */
  readonly name: number;
  readonly alpn: number;
}

/**
 * What it says first: one record, which is opened to be shown and stays in the socket. In front of it stands by what the main
 * thread can go on with the client itself.
 */
export class RealityBytes implements ClientBytes {
  readonly stream = null;
  readonly comesWhole = true;
  readonly #owner: PendingOwner;
  readonly #slot: number;
  readonly #fd: number;
  readonly #client: RealityClient;
  /** Empty: nothing was seen yet. */
  #shown: Buffer = NOTHING;
  #payload: Buffer = NOTHING;
  #recordBytes = 0;
  /** Behind what was understood. */
  #rest: Buffer = NOTHING;

  constructor(owner: PendingOwner, { slot, fd }: Pick<RequestingTask, "slot" | "fd">, client: RealityClient) {
    this.#owner = owner;
    this.#slot = slot;
    this.#fd = fd;
    this.#client = client;
  }

  look(): number {
    if (this.#shown.length === 0) {
      const found = this.#find();
      if (found <= 0) return found;
    }
    this.#owner.calls.bytes.set(this.#shown);
    return this.#shown.length;
  }

  #find(): number {
    const { calls } = this.#owner;
    const size = calls.look(this.#fd);
    if (size <= 0) return size;
    if (size < HEADER_BYTES) return EAGAIN;
    const end = HEADER_BYTES + calls.bytes.readUInt16BE(3);
    if (calls.bytes[0] !== RECORD.applicationData || end > calls.bytes.length) return FOR_MAIN;
    return size < end ? EAGAIN : this.#open(Buffer.from(calls.bytes.subarray(0, end)));
  }

  #open(record: Buffer): number {
    const payload = this.#client.connection.preview({
      type: RECORD.applicationData,
      header: record.subarray(0, HEADER_BYTES),
      body: record.subarray(HEADER_BYTES),
    });
    if (payload === null) return FOR_MAIN;
    const shown = Buffer.concat([this.#stateFor(record.length), payload]);
    if (shown.length > REQUEST_BYTES) return FOR_MAIN;
    this.#recordBytes = record.length;
    this.#payload = payload;
    this.#shown = shown;
    return shown.length;
  }

  #stateFor(recordBytes: number): Buffer {
    const { connection, suite, name, alpn } = this.#client;
    return encodeShown({ ...connection.state, recordBytes, suite, name, alpn });
  }

  /** Of the payload that was shown; once. */
  consume(size: number): number {
    const isGone = this.#owner.calls.consume(this.#fd, this.#recordBytes) === this.#recordBytes;
    this.#rest = this.#payload.subarray(size);
    return isGone ? size : BROKEN;
  }

  /** Behind `consume`. */
  begin({ layers, details }: OpenMessage): OpenMessage {
    const { numbers, unread } = this.#client.connection.depart();
    const [opening = 0, sealing = 0, opened = 0, ...others] = numbers;
    const ahead = this.#rest.length === 0 ? [] : [{ kind: "read-ahead", payload: this.#rest } as const];
    return this.#owner.host.begin(this.#slot * 2 + CLIENT, {
      kind: "records",
      numbers: [opening, sealing, opened + 1, ...others],
      unread,
      layers: [...ahead, ...layers],
      details,
    });
  }

  /** Nothing is asked behind REALITY that a worker answers. */
  say(): number {
    return BROKEN;
  }

  depart(): number {
    const { calls, host, table } = this.#owner;
    const index = this.#slot * 2 + CLIENT;
    calls.unwatch(host.epoll, this.#fd);
    table.descriptors[index + 1] = -1;
    const records = this.#stateFor(0);
    host.post({ index, records, toClient: NOTHING, toDest: NOTHING, why: "" } satisfies LeftClient);
    return LEFT;
  }

  free(): void {}

  dispose(): void {
    this.#client.connection[Symbol.dispose]();
  }
}
