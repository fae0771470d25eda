/** xtls-rprx-vision under test: a wire that is looked at, and TLS inside. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Server as TcpServer, type Socket } from "node:net";
import { connect as tlsConnect, createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { Dialer } from "#core/outbound.ts";
import type { VisionStream } from "#protocols/vless/vision-stream.ts";
import { makeCertificate } from "./certificate.ts";
import { digestNext, pour } from "./exchange.ts";

const certificate = makeCertificate({ names: ["server.test"] });

/** Passes bytes on and keeps them; `cut` splits what it passes into pieces of that size. */
export async function openTap(port: number, cut: number | null) {
  const seen = { up: [] as Buffer[], down: [] as Buffer[] };
  const pass = (from: Socket, to: Socket, kept: Buffer[]) => {
    from.on("error", () => to.destroy()).on("end", () => to.end());
    from.on("close", () => from.readableEnded || to.destroy());
    from.on("data", (bytes: Buffer) => {
      kept.push(bytes);
      let flowing = true;
      for (let at = 0; at < bytes.length; at += cut ?? bytes.length)
        flowing = to.write(bytes.subarray(at, at + (cut ?? bytes.length)));
      if (flowing) return;
      from.pause();
      to.once("drain", () => from.resume());
    });
  };
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const remote = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    sockets.add(client).add(remote);
    pass(client, remote, seen.up);
    pass(remote, client, seen.down);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const of = (pieces: Buffer[]) => Buffer.concat(pieces);
  return {
    port: (server.address() as { port: number }).port,
    up: () => of(seen.up),
    down: () => of(seen.down),
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

export async function openTlsOrigin(maxVersion: "TLSv1.2" | "TLSv1.3", on: (socket: TLSSocket) => void) {
  const options = { cert: certificate.cert, key: certificate.key, maxVersion, allowHalfOpen: true };
  const sockets = new Set<Socket>();
  const server: TcpServer = createTlsServer(options, (socket) => {
    sockets.add(socket.on("error", () => {}));
    on(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    destination: { host: "origin.test", ip: null, port },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A TLS connection inside: 4 MiB each way at once; what the VLESS stream says of itself, and the plain inner bytes. */
export async function converse(
  outbound: Pick<Dialer, "connect">,
  version: "TLSv1.2" | "TLSv1.3",
  size = 4 << 20,
): Promise<VisionStream> {
  const [up, down] = [randomBytes(size), randomBytes(size)];
  const arrived = Promise.withResolvers<string>();
  await using origin = await openTlsOrigin(version, (socket) => {
    digestNext(socket, size).then(arrived.resolve, arrived.reject);
    pour(socket, down, 30_000).catch(arrived.reject);
  });
  const signal = AbortSignal.timeout(20_000);
  const stream = await outbound.connect(origin.destination, { signal, metadata: null });
  const inner = tlsConnect({ socket: stream, servername: "server.test", rejectUnauthorized: false });
  inner.on("error", () => {});
  await once(inner, "secureConnect");
  const received = digestNext(inner, size);
  await pour(inner, up, 70_000);
  const [got, want] = [await received, await arrived.promise];
  const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
  assert.equal(got, digest(down));
  assert.equal(want, digest(up));
  inner.destroy();
  stream.destroy();
  return stream as VisionStream;
}
