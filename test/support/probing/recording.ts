/** What an observer on the path records of a TLS client, and replays. */
import { once } from "node:events";
import { connect } from "node:net";
import { duplexPair } from "node:stream";
import { connect as connectTls } from "node:tls";

/** All that a TLS client sends until `words` are out: hello, the end of the handshake, encrypted records. */
export async function recordFlight(
  port: number,
  trusted: { readonly ca: string; readonly servername: string },
  words: Buffer,
): Promise<Buffer> {
  const server = connect({ port, host: "127.0.0.1", noDelay: true });
  const [near, far] = duplexPair();
  const sent: Buffer[] = [];
  server.on("error", () => {});
  server.on("data", (bytes: Buffer) => far.write(bytes));
  far.on("data", (bytes: Buffer) => {
    sent.push(bytes);
    server.write(bytes);
  });
  const stream = connectTls({ socket: near, ...trusted });
  await once(stream, "secureConnect");
  stream.on("error", () => {});
  await new Promise((resolve) => stream.write(words, resolve));
  stream.destroy();
  server.destroy();
  return Buffer.concat(sent);
}

/** Types of the records in order. Their bytes are new every time, and a signature is not always as long. */
export function recordTypes(bytes: Buffer): string {
  const types: number[] = [];
  // Record (RFC 8446 §5.1): TYPE(1) VERSION(2) LENGTH(2) BODY.
  for (let at = 0; at + 5 <= bytes.length; at += 5 + bytes.readUInt16BE(at + 3))
    types.push(bytes[at] as number);
  return `records ${types.join(" ")}`;
}

/** Types and lengths of the records in order; what is no whole record, in hexadecimal digits. */
export function recordShapes(bytes: Buffer): string {
  const shapes: string[] = [];
  let at = 0;
  while (at + 5 <= bytes.length && bytes[at + 1] === 3) {
    const end = at + 5 + bytes.readUInt16BE(at + 3);
    if (end > bytes.length) break;
    shapes.push(`${bytes[at]}:${end - at}`);
    at = end;
  }
  return [...shapes, bytes.toString("hex", at)].join(" ").trimEnd();
}
