/** A node of AnyTLS as a program uses it, to a server whose frames are in the test's own hands. */
import { once } from "node:events";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Outbound } from "#core/outbound.ts";
import { toDestination } from "#net/address/ip.ts";
import { anytls } from "#protocols/anytls/index.ts";
import * as wire from "#protocols/anytls/wire.ts";
import { type Frames, framesOver } from "./anytls-frames.ts";
import { openTcpOrigin } from "./origin.ts";
import { openClient } from "./protocol-pair.ts";
import { openRelayed, type Relayed, type RelayedOptions } from "./relayed.ts";
import { certificate, openTlsOrigin } from "./tls-origin.ts";

/** Of the node, at its server. */
export interface NodeSession extends Frames {
  /** Of each TLS record that came. */
  readonly records: number[];
}

export interface AnytlsNode extends AsyncDisposable {
  /** Clients' connections that are relayed by the node. */
  readonly relayed: Relayed;
  /** A client's, and the session in which the stream of it has been opened and answered. */
  dial(id: number, open?: NodeSession): Promise<{ client: Socket; session: NodeSession }>;
  readonly sessions: readonly NodeSession[];
}

export async function openAnytlsNode(options: RelayedOptions = {}, fields: object = {}): Promise<AnytlsNode> {
  await using undo = new AsyncDisposableStack();
  const origin = undo.use(await openTlsOrigin());
  const place = { server: "127.0.0.1", port: origin.port, password: "letmein", sni: "server.test" };
  const keys = { ...place, fingerprint: certificate.fingerprint, ...fields };
  const outbound: Outbound = undo.use(await openClient(anytls, keys));
  const unused = undo.use(await openTcpOrigin(() => {}));
  const back = (socket: Socket) => {
    socket.destroy();
    const context = { signal: AbortSignal.timeout(20_000), metadata: null };
    return outbound.connect(toDestination("example.com", 443), context);
  };
  const relayed = undo.use(await openRelayed(unused.port, { ...options, back }));
  const sessions: NodeSession[] = [];
  const opened = undo.move();
  return {
    relayed,
    sessions,
    async dial(id, open) {
      const accepted = open === undefined ? origin.accepted() : null;
      const client = await relayed.dial();
      client.on("error", () => {});
      if (accepted !== null) sessions.push(await openSession(await accepted));
      const session = open ?? (sessions.at(-1) as NodeSession);
      await session.expect(wire.SYN, id);
      session.send(wire.encodeFrame(wire.SYNACK, id));
      return { client, session };
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function openSession(socket: TLSSocket): Promise<NodeSession> {
  socket.setNoDelay(true).on("error", () => {});
  const records: number[] = [];
  socket.on("data", (bytes: Buffer) => records.push(bytes.length));
  const frames = framesOver(socket, true);
  await frames.expect(wire.SETTINGS, 0);
  frames.send(wire.encodeFrame(wire.SERVER_SETTINGS, 0, Buffer.from("v=2")));
  return { ...frames, records };
}

/** Until a client has so many bytes more. They are the caller's. */
export async function arrived(client: Socket, sizeBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  while (bytes < sizeBytes) {
    const chunk = client.read() as Buffer | null;
    if (chunk === null) await once(client, "readable");
    else bytes += chunks.push(chunk) && chunk.length;
  }
  return Buffer.concat(chunks);
}
