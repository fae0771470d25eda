/** TLS 1.3 records of a worker in memory, with the server's end of the connection. */
import assert from "node:assert/strict";
import { ByteQueue } from "#lib/byte-queue.ts";
import { EAGAIN, EINTR, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { cipherSuite } from "#transport/tls13/cipher-suites.ts";
import { encodeMessage, MESSAGE } from "#transport/tls13/handshake-messages.ts";
import { trafficKey } from "#transport/tls13/key-schedule.ts";
import {
  type OpenedRecord,
  RECORD,
  RecordOpener,
  RecordSealer,
  takeRecord,
} from "#transport/tls13/records.ts";
import { MemorySocket } from "./memory-socket.ts";
import { RecordWire } from "#dataplane/workers/wire/record-wire.ts";
import type { WireIo } from "#dataplane/workers/wire/wire.ts";

const [SEAL, OPEN] = [1, 0];
export const FULL_RECORD = 16_384;

export interface Bench {
  readonly wire: RecordWire;
  readonly socket: MemorySocket;
  readonly io: WireIo;
  /** The server's ends. */
  readonly sealer: RecordSealer;
  readonly opener: RecordOpener;
}

export function openBench({ id = 0x1301, mostContent = FULL_RECORD, unread = Buffer.alloc(0) } = {}): Bench {
  const socket = new MemorySocket();
  const { memory } = socket;
  const suite = cipherSuite(id) ?? assert.fail();
  const [ofServer, ofClient] = [Buffer.alloc(suite.hashBytes, 1), Buffer.alloc(suite.hashBytes, 2)];
  const contextOf = (secret: Buffer, way: number): number =>
    Number(memory.evp.openContext(suite.aead, trafficKey(suite, secret), way));
  const words = [contextOf(ofServer, OPEN), contextOf(ofClient, SEAL), 0, 0, id, mostContent];
  const state = Buffer.concat([ofServer, ofClient, unread]);
  const wire = new RecordWire(memory, 9, { word: (at) => words[at] ?? assert.fail(), suite, state });
  const io = { calls: socket as unknown as RelayCalls, bufferedBytes: 0, wakeAtMs: Infinity };
  return {
    wire,
    socket,
    io,
    sealer: new RecordSealer(suite, ofServer),
    opener: new RecordOpener(suite, ofClient),
  };
}

export const payload = ({ sealer }: Bench, text: Uint8Array | string): Buffer =>
  sealer.seal(RECORD.applicationData, Buffer.from(text));

export const update = ({ sealer }: Bench, request: 0 | 1): Buffer => {
  const told = sealer.seal(RECORD.handshake, encodeMessage(MESSAGE.keyUpdate, Buffer.of(request)));
  sealer.update();
  return told;
};

/** Reads until nothing more comes; the last answer says why. */
export function drain({ wire, io, socket }: Bench, size: number): { text: Buffer; last: number } {
  const got: Buffer[] = [];
  for (let steps = 0; ; steps++) {
    assert.ok(steps < 100_000, "it gets no further");
    const bytes = wire.read(io, size);
    assert.ok(bytes <= size);
    if (bytes > 0) got.push(Buffer.from(socket.memory.plain.subarray(0, bytes)));
    else if (bytes !== EINTR) return { text: Buffer.concat(got), last: bytes };
    if (!wire.readable) return { text: Buffer.concat(got), last: EAGAIN };
  }
}

/** What the client has sent, as the server opens it, until there is no more. */
export function sentRecords(
  { socket, opener }: Bench,
  onKeyUpdate = (): void => opener.update(),
): OpenedRecord[] {
  const queue = new ByteQueue();
  queue.push(socket.sent);
  socket.sent = Buffer.alloc(0);
  const all: OpenedRecord[] = [];
  for (let record = takeRecord(queue); record !== null; record = takeRecord(queue)) {
    const opened = opener.open(record);
    if (opened.type === RECORD.handshake) onKeyUpdate();
    all.push(opened);
  }
  assert.equal(queue.length, 0);
  return all;
}

export const alertsIn = (records: readonly OpenedRecord[]): (number | undefined)[] =>
  records.filter(({ type }) => type === RECORD.alert).map(({ content }) => content[1]);
