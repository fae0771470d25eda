/**
 * The client and the site of a REALITY measurement, in processes of their own. A connection is: connect, handshake, a VLESS
 * request to the sink, a byte there and back, the end by the client; a handshake has the end by both sides behind it.
 */
import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { SILENT } from "#core/log.ts";
import type { TlsClient } from "#core/tls.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { openTrust } from "#net/dial/trust.ts";
import * as vless from "#protocols/vless/wire.ts";
import { readTlsClient } from "#transport/tls/client-options.ts";
import { NAME, uuid } from "../test/support/interop/cells.ts";
import { openDest, type RealityCell } from "../test/support/interop/reality.ts";
import { textFiles } from "../test/support/text-files.ts";
import { tlsProvider } from "../test/support/tls.ts";

export interface RealityTask {
  readonly port: number;
  readonly sinkPort: number;
  /** `reality-opts` and what else the node's TLS has. */
  readonly keys: object;
  readonly parallel: number;
  readonly amount: number;
  /** No request behind it. */
  readonly isHandshakeAlone: boolean;
}

export interface RealityResult {
  readonly seconds: number;
}

const HOST = "127.0.0.1";
const DIAL_MS = 15_000;
const ID = Buffer.from(uuid.replaceAll("-", ""), "hex");

async function run({
  port,
  sinkPort,
  keys,
  parallel,
  amount,
  isHandshakeAlone,
}: RealityTask): Promise<RealityResult> {
  const trust = await openTrust([], textFiles, "bench");
  const place = { node: "bench", server: HOST, serverName: NAME, files: textFiles, trust };
  const options = await readTlsClient({ "skip-cert-verify": false, ...keys }, place);
  const client = tlsProvider.makeClient(options, SILENT);
  const destination = { host: null, ip: LOOPBACK_V4, port: sinkPort };
  const request = vless.encodeRequest(ID, { flow: "", command: 1, destination });
  const words = Buffer.concat([request, Buffer.from("E")]);
  const startMs = performance.now();
  let left = amount;
  const worker = async (): Promise<void> => {
    while (left-- > 0)
      await visit(port, client, isHandshakeAlone ? shakeHands : (stream) => exchange(stream, words));
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return { seconds: (performance.now() - startMs) / 1000 };
}

async function visit(port: number, client: TlsClient, use: (stream: Duplex) => Promise<void>): Promise<void> {
  const socket = connect({ port, host: HOST, noDelay: true, allowHalfOpen: true });
  await once(socket, "connect");
  const { stream } = await client.open(socket, { signal: AbortSignal.timeout(DIAL_MS) });
  stream.on("error", () => {});
  await use(stream);
  stream.destroy();
}

async function exchange(stream: Duplex, words: Buffer): Promise<void> {
  stream.write(words);
  for (let missing = vless.ANSWER.length + 1; missing > 0;) {
    const [bytes] = (await once(stream, "data")) as [Buffer];
    missing -= bytes.length;
  }
  stream.end();
  await once(stream, "finish");
}

/** The server ends behind the client when it has seen the end of the handshake. */
async function shakeHands(stream: Duplex): Promise<void> {
  const over = new Promise((resolve) => stream.once("close", resolve).once("end", resolve));
  stream.resume().end();
  await over;
}

if (process.argv[2] === "site") {
  const group = (process.argv[3] ?? "X25519") as RealityCell["group"];
  const { port } = await openDest({ group, mldsa65: false, dest: 0 });
  process.send?.(port);
} else if (process.argv[2] === "load")
  process.on("message", (task: RealityTask) => void run(task).then((result) => process.send?.(result)));
