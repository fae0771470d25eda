/** What real and written clients send first. */
import { once } from "node:events";
import { duplexPair } from "node:stream";
import { connect } from "node:tls";

/** The first flight of this runtime's own TLS client, records included. */
export async function tlsClientHello(servername: string): Promise<Buffer> {
  const [near, far] = duplexPair();
  const client = connect({ socket: near, servername, rejectUnauthorized: false });
  client.on("error", () => {}); // it gets no answer
  const [hello] = (await once(far, "data")) as [Buffer];
  client.destroy();
  far.destroy();
  return hello;
}

/** The handshake message in one record. */
export function messageOf(record: Buffer): Buffer {
  return record.subarray(5, 5 + record.readUInt16BE(3));
}

/** A handshake message in records of `size` bytes each. */
export function inRecords(message: Buffer, size: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const fragment = message.subarray(at, at + size);
    const header = Buffer.from([22, 3, 1, 0, 0]);
    header.writeUInt16BE(fragment.length, 3);
    parts.push(header, fragment);
  }
  return Buffer.concat(parts);
}

/** What can be compared of a hello: all but what is random. */
export interface Hello {
  readonly version: number;
  readonly suites: readonly number[];
  /** By number, in order, with their bytes; of key shares the groups and their sizes. */
  readonly extensions: readonly (readonly [number, string])[];
}

const KEY_SHARE = 51;

/** RFC 8446 §4.1.2. */
export function helloOf(record: Buffer): Hello {
  const message = messageOf(record);
  let at = 4 + 2 + 32;
  at += 1 + (message[at] as number); // the session
  const suites: number[] = [];
  const suitesEnd = at + 2 + message.readUInt16BE(at);
  for (at += 2; at < suitesEnd; at += 2) suites.push(message.readUInt16BE(at));
  at += 1 + (message[at] as number); // compressions
  const extensions: [number, string][] = [];
  for (at += 2; at < message.length;) {
    const [type, size] = [message.readUInt16BE(at), message.readUInt16BE(at + 2)];
    const body = message.subarray(at + 4, at + 4 + size);
    extensions.push([type, type === KEY_SHARE ? sharesOf(body) : body.toString("hex")]);
    at += 4 + size;
  }
  return { version: message.readUInt16BE(4), suites, extensions };
}

function sharesOf(body: Buffer): string {
  const shares: string[] = [];
  for (let at = 2; at < body.length; at += 4 + body.readUInt16BE(at + 2))
    shares.push(`${body.readUInt16BE(at)}: ${body.readUInt16BE(at + 2)} bytes`);
  return shares.join(", ");
}
