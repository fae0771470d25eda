/** simple-obfs, mode tls: a ClientHello whose session ticket is the first payload, a fake answer, then data records. */
import { randomBytes } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";

/** Longest payload of a record, as simple-obfs cuts it. */
const MAX_RECORD = 16 * 1024;
/** The hello's lengths are of 16 bits; what is above goes into records behind it. */
const MAX_TICKET = 8 * 1024;
/** ServerHello record (96), ChangeCipherSpec record (6), then type and version of the first data record (3). */
const ANSWER_BYTES = 96 + 6 + 3;
const RECORD_HEAD = Buffer.from([0x17, 3, 3]);

export function obfsTlsClient(host: string): StreamCodec {
  let opened = false;
  const arrived = new ByteQueue();
  /** Bytes to pass over before the next length. */
  let passOver = ANSWER_BYTES;
  /** Bytes that are left of a record; 0: a length comes next. */
  let left = 0;

  function open(wire: Buffer, emit: (plain: Buffer) => void): void {
    arrived.push(wire);
    for (;;) {
      if (left > 0) {
        const piece = arrived.takeSome(left);
        if (piece.length === 0) return;
        left -= piece.length;
        emit(piece);
      } else {
        const head = arrived.take(passOver + 2);
        if (head === null) return;
        left = head.readUInt16BE(passOver);
        passOver = RECORD_HEAD.length;
      }
    }
  }

  function seal(plain: Buffer): Buffer {
    if (opened) return Buffer.concat(records(plain));
    opened = true;
    const ticket = plain.subarray(0, MAX_TICKET);
    return Buffer.concat([clientHello(host, ticket), ...records(plain.subarray(MAX_TICKET))]);
  }

  return {
    seal,
    sealEnd: () => (opened ? null : clientHello(host, Buffer.alloc(0))),
    open,
    openEnd() {
      if (left > 0 || arrived.length > 0) throw new ProtocolError("the obfs stream ended within a record");
    },
  };
}

function records(plain: Buffer): Buffer[] {
  const out: Buffer[] = [];
  for (let from = 0; from < plain.length; from += MAX_RECORD) {
    const piece = plain.subarray(from, from + MAX_RECORD);
    out.push(RECORD_HEAD, u16(piece.length), piece);
  }
  return out;
}

function u16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}

function extension(type: number, body: Buffer): Buffer {
  return Buffer.concat([u16(type), u16(body.length), body]);
}

const CIPHER_SUITES = Buffer.from(
  "c02cc030009fcca9cca8ccaac02bc02f009ec024c028006bc023c0270067c00ac0140039c009c0130033009d009c003d003c0035002f00ff",
  "hex",
);
/** EC point formats, groups, signature algorithms, encrypt-then-MAC, extended master secret. */
const LAST_EXTENSIONS = Buffer.from(
  "000b000403000102000a000a0008001d001700190018000d0020001e060106020603050105020503040104020403030103020303020102020203001600000017" +
    "0000",
  "hex",
);

// Record [22, 3.1] { ClientHello { 3.3, time and random, session id(32), suites(56), null compression, extensions } },
// the session ticket first. Record length is 212 + payload + host.
function clientHello(host: string, ticket: Buffer): Buffer {
  const name = Buffer.from(host);
  const time = Buffer.alloc(4);
  time.writeUInt32BE(Math.floor(Date.now() / 1000));
  const serverName = Buffer.concat([u16(name.length + 3), Buffer.from([0]), u16(name.length), name]);
  const extensions = Buffer.concat([extension(0x23, ticket), extension(0, serverName), LAST_EXTENSIONS]);
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    time,
    randomBytes(28),
    Buffer.from([32]),
    randomBytes(32),
    u16(CIPHER_SUITES.length),
    CIPHER_SUITES,
    Buffer.from([1, 0]),
    u16(extensions.length),
    extensions,
  ]);
  const handshake = Buffer.concat([Buffer.from([1, 0]), u16(body.length), body]);
  return Buffer.concat([Buffer.from([22, 3, 1]), u16(handshake.length), handshake]);
}
