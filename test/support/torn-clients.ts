/** Clients of what we serve and never speak ourselves, for torn wires: SOCKS4, requests with a whole URL, a second try. */
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { Duplex } from "node:stream";
import * as z from "zod";
import { DialError } from "#core/errors.ts";
import { flag } from "#core/fields.ts";
import { serverFields } from "#core/node-fields.ts";
import { TCP_ONLY } from "#core/outbound.ts";
import { outboundSide, type Protocol } from "#core/protocol.ts";
import { destinationText, type Destination } from "#core/session.ts";
import { ByteReader, type Decoded } from "#net/stream/byte-reader.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { encodeBasic } from "#protocols/http/credentials.ts";
import { decodeHead } from "#protocols/http/head.ts";
import { openProxyLink } from "#protocols/mixed/proxy-link.ts";
import { tlsClientFields } from "#transport/tls/fields.ts";

type Speak = (wire: Duplex, destination: Destination, signal: AbortSignal) => Promise<Duplex>;

function clientThat(type: string, speak: Speak): Protocol {
  const schema = z.object({ ...serverFields, tls: flag().default(false), ...tlsClientFields });
  const outbound = outboundSide(type, schema, async (options, env) => {
    const link = await openProxyLink(options, env);
    return {
      name: env.name,
      type,
      networks: TCP_ONLY,
      connect: (destination, context) =>
        link.open(context, (wire, signal) => speak(wire, destination, signal)),
      associate: () => Promise.reject(new DialError("unsupported", `${type} carries no datagrams`)),
      async [Symbol.asyncDispose]() {},
    };
  });
  return { type, outbound };
}

const refused = (what: string): DialError => new DialError("failed", `the listener answered ${what}`);

/** 4 for an address, 4a for a name: 0.0.0.1 in place of an address, and the name behind the user. */
export const socks4 = clientThat("socks4", async (wire, { host, ip, port }, signal) => {
  using reader = new ByteReader(wire, { signal });
  const [address, name] = ip === null ? [[0, 0, 0, 1], `${host}\0`] : [bytesOfIp(ip), ""];
  wire.write(Buffer.from([4, 1, port >> 8, port & 255, ...address, ...Buffer.from(`me\0${name}`)]));
  const code = await reader.take((bytes) => (bytes.length < 8 ? null : { value: bytes[1], size: 8 }));
  if (code !== 90) throw refused(`${code}`);
  return wire;
});

/** Sends credentials only when asked: CONNECT, 407, and CONNECT once more on the same connection. */
export const connectTwice = (username: string, password: string): Protocol =>
  clientThat("http", async (wire, destination, signal) => {
    using reader = new ByteReader(wire, { signal });
    const place = destinationText(destination);
    const head = `CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n`;
    wire.write(`${head}\r\n`);
    const first = await reader.take(decodeAnswer);
    if (first !== 407) throw refused(`${first}`);
    wire.write(`${head}Proxy-Authorization: ${encodeBasic(username, password)}\r\n\r\n`);
    const second = await reader.take(decodeAnswer);
    if (second !== 200) throw refused(`${second}`);
    return wire;
  });

/** The status of an answer and its text, which is read, too. */
function decodeAnswer(bytes: Buffer): Decoded<number> | null {
  const head = decodeHead(bytes, 0);
  if (head === null) return null;
  const { startLine, fields } = head.value;
  const length = fields.find(([name]) => name === "content-length")?.[1] ?? "0";
  const size = head.size + Number(length);
  return bytes.length < size ? null : { value: Number(startLine.split(" ")[1]), size };
}

export interface PlainRequest {
  readonly method: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  /** Another request, answered in full, goes before it on the same connection. */
  readonly isSecond?: true;
}

/** A request with a whole URL by node:http: what is written is its body, what is read is the body of the answer. */
export const plainRequest = ({ method, headers = {}, isSecond }: PlainRequest): Protocol =>
  clientThat("plain", async (wire, destination) => {
    const agent = new Agent({ keepAlive: isSecond === true, maxSockets: 1 });
    wire.once("end", () => wire.destroy()); // the library takes a connection as over when its peer ends
    let dialled = false;
    agent.createConnection = () => {
      if (dialled) throw refused("by closing the connection");
      dialled = true;
      return wire;
    };
    const path = `http://${destinationText(destination)}/`;
    const ask = (as: string, fields: Readonly<Record<string, string>>) =>
      request({ agent, method: as, path, headers: { host: destinationText(destination), ...fields } });
    if (isSecond === true) await whole(ask("GET", {}));
    return new Body(ask(method, headers));
  });

function whole(asking: ClientRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    asking.on("error", reject).on("response", (answer: IncomingMessage) => {
      if (answer.statusCode !== 200) reject(refused(`${answer.statusCode}`));
      answer.on("error", reject).on("end", resolve).resume();
    });
    asking.end();
  });
}

class Body extends Duplex {
  readonly #request: ClientRequest;

  constructor(asking: ClientRequest) {
    super({ allowHalfOpen: true });
    this.#request = asking;
    if (asking.method === "GET") asking.end();
    asking.on("error", (error) => this.destroy(error));
    asking.on("response", (answer) => {
      if (answer.statusCode !== 200) this.destroy(refused(`${answer.statusCode}`));
      answer.on("data", (bytes) => this.push(bytes)).on("end", () => this.push(null));
      answer.on("error", (error) => this.destroy(error));
    });
  }

  override _read(): void {}

  /** A GET has no body. */
  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    if (this.#request.method !== "GET") this.#request.write(bytes);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#request.destroy();
    done(error);
  }
}
