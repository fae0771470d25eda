/** What real and written clients send first. */
import { once } from "node:events";
import { duplexPair } from "node:stream";
import { connect } from "node:tls";

/** The first flight of this runtime's own TLS client, records included. */
export async function tlsClientHello(servername: string): Promise<Buffer> {
  const [near, far] = duplexPair();
  const client = connect({ socket: near, servername, rejectUnauthorized: false });
  client.on("error", () => {}); // nobody answers it
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
