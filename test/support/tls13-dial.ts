/** Dials loopback by the TLS 1.3 engine alone, past everything that reads configurations. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import { CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { ClientConnection, type ClientConnectionOptions } from "#transport/tls13/client-connection.ts";
import { acceptAnybody } from "#transport/tls13/leaf-certificate.ts";
import type { Session } from "#transport/tls13/sessions.ts";
import { RecordStream } from "#transport/record-stream.ts";

export interface Dial13Options extends Partial<ClientConnectionOptions> {
  readonly template?: HelloTemplate;
  readonly protocols?: readonly string[] | null;
  readonly serverName?: string;
  /** To be resumed. */
  readonly session?: Session | null;
}

/** Accepts every certificate unless a judge is given. */
export function connection13(options: Dial13Options = {}): ClientConnection {
  const {
    template = CHROME_133,
    protocols = null,
    serverName = "server.test",
    session = null,
    hello = buildHello(template, { serverName, protocols, session }),
    ...others
  } = options;
  return new ClientConnection({
    hello,
    identity: null,
    judge: acceptAnybody,
    ...others,
  });
}

export interface Dialed13 {
  readonly stream: RecordStream;
  readonly socket: Socket;
  readonly connection: ClientConnection;
}

/** Rejects with what the stream was destroyed with. */
export async function dial13(port: number, options: Dial13Options = {}): Promise<Dialed13> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  await once(socket, "connect");
  const connection = connection13(options);
  const stream = new RecordStream(socket, connection);
  stream.begin();
  await once(stream, "secure");
  stream.on("error", () => {}); // of a test that is over
  return { stream, socket, connection };
}
