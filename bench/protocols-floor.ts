/**
 * Short streams straight at a server, by a load that costs less than the server does: AnyTLS, and a bare TLS server without
 * a protocol that reads and writes as often (the request, a dial, the answer to it, a byte there, a byte back, the end).
 * The second is what the runtime alone spends.
 */
import { once } from "node:events";
import { connect as dial, type AddressInfo, type Socket } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { DEFAULT_SCHEME } from "#protocols/anytls/padding.ts";
import {
  encodeFrame,
  encodePreamble,
  encodeSettings,
  FIN,
  HEADER_BYTES,
  passwordHash,
  PSH,
  SETTINGS,
  SYN,
} from "#protocols/anytls/wire.ts";
import { makeCertificate } from "../test/support/certificate.ts";
import { cpuSeconds, endOf, forkServer } from "./relay-subjects.ts";

const HOST = "127.0.0.1";
const HEADER = Buffer.alloc(HEADER_BYTES, "h");
const REQUEST = Buffer.alloc(28, "S");
const [OPEN, END] = ["S", "F"].map((letter) => letter.charCodeAt(0));

/** What the load says, and how it knows that stream `id` is over. */
interface Speech {
  readonly hello: Buffer;
  request(id: number): Buffer;
  byte(id: number): Buffer;
  isEnd(bytes: Buffer, id: number): boolean;
}

const BARE: Speech = {
  hello: Buffer.alloc(0),
  request: () => REQUEST,
  byte: () => Buffer.from("E"),
  isEnd: (bytes) => bytes.at(-1) === END,
};

function anytls(password: string, sinkPort: number): Speech {
  const target = encodeSocksAddress({ host: null, ip: LOOPBACK_V4, port: sinkPort });
  const settings = encodeSettings({ v: "2", client: "bench", "padding-md5": DEFAULT_SCHEME.md5 });
  return {
    hello: Buffer.concat([encodePreamble(passwordHash(password), 30), encodeFrame(SETTINGS, 0, settings)]),
    request: (id) => Buffer.concat([encodeFrame(SYN, id), encodeFrame(PSH, id, target)]),
    byte: (id) => encodeFrame(PSH, id, Buffer.from("E")),
    isEnd: (bytes, id) => bytes.subarray(-HEADER_BYTES).equals(encodeFrame(FIN, id)),
  };
}

export interface Amount {
  /** Connections, each with one stream after the other. */
  readonly parallel: number;
  readonly ms: number;
}

/** CPU seconds of the server for one stream. */
export async function bareStream(sinkPort: number, amount: Amount): Promise<number> {
  const { child, port } = await forkServer("./protocols-floor.ts", ["bare", `${sinkPort}`]);
  try {
    return await perStream(child.pid ?? null, port, BARE, amount);
  } finally {
    await endOf(child);
  }
}

/** The same of an AnyTLS server, which is the process `pid`. */
export function anytlsStream(
  server: { readonly pid: number; readonly port: number; readonly password: string },
  sinkPort: number,
  amount: Amount,
): Promise<number> {
  return perStream(server.pid, server.port, anytls(server.password, sinkPort), amount);
}

async function perStream(pid: number | null, port: number, speech: Speech, amount: Amount): Promise<number> {
  await drive(port, speech, amount); // warm
  const before = cpuSeconds(pid);
  const streams = await drive(port, speech, amount);
  return (cpuSeconds(pid) - before) / streams;
}

async function drive(port: number, speech: Speech, { parallel, ms }: Amount): Promise<number> {
  const endsAtMs = performance.now() + ms;
  let streams = 0;
  const worker = async (): Promise<void> => {
    const wire = connect({ port, host: HOST, rejectUnauthorized: false });
    await once(wire, "secureConnect");
    wire.setNoDelay(true);
    wire.write(speech.hello);
    for (let id = 1; performance.now() < endsAtMs; id++, streams++) await oneStream(wire, speech, id);
    wire.destroy();
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return streams;
}

function oneStream(wire: TLSSocket, speech: Speech, id: number): Promise<void> {
  return new Promise((resolve) => {
    const take = (bytes: Buffer): void => {
      if (!speech.isEnd(bytes, id)) return;
      wire.off("data", take);
      resolve();
    };
    wire.on("data", take);
    wire.write(speech.request(id));
    setImmediate(() => wire.write(speech.byte(id))); // as a client's first byte comes a moment after its request
  });
}

function serve(wire: TLSSocket, sinkPort: number): void {
  let far: Socket | null = null;
  wire.on("error", () => {}); // the load may leave in the middle
  wire.on("data", (bytes: Buffer) => {
    if (bytes[0] === OPEN) far = openFar(wire, sinkPort);
    const rest = bytes[0] === OPEN ? bytes.subarray(REQUEST.length) : bytes;
    if (rest.length > 0) far?.write(rest); // kept by the socket until it is connected
  });
}

function openFar(wire: TLSSocket, port: number): Socket {
  const far = dial({ port, host: HOST, noDelay: true, allowHalfOpen: true });
  far.on("error", () => {});
  far.on("connect", () => wire.write(HEADER));
  far.on("data", (bytes: Buffer) => wire.write(Buffer.concat([HEADER, bytes])));
  far.on("end", () => {
    wire.write("F".repeat(HEADER.length));
    far.end();
  });
  return far;
}

if (process.argv[2] === "bare") {
  const { key, cert } = makeCertificate({ names: ["server.test"] });
  const server = createServer({ key, cert, noDelay: true }, (wire) => serve(wire, Number(process.argv[3])));
  server.listen(0, HOST, () => process.send?.((server.address() as AddressInfo).port));
  process.on("disconnect", () => process.exit());
}
