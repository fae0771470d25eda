/** The accepting side of HTTP: CONNECT is answered here, anything else goes to the plain proxy. */
import { ProtocolError } from "#core/errors.ts";
import type { InboundEnv } from "#core/inbound.ts";
import type { ByteReader } from "#net/stream/byte-reader.ts";
import { Refusal } from "#protocols/mixed/listen.ts";
import type { Client } from "#protocols/mixed/client.ts";
import { AUTHENTICATION_REQUIRED, BAD_REQUEST, encodeAnswer } from "./answers.ts";
import { parseConnectTarget } from "./authority.ts";
import { identify } from "./credentials.ts";
import { decodeConnect, type ConnectRequest } from "./head.ts";
import type { PlainProxy } from "./plain.ts";
import { tunnelSession } from "./tunnel.ts";

/** Throws `Refusal` with the answer for a client that is refused. It may try again within the 30 s of a handshake. */
export async function serveHttp(
  client: Client,
  reader: ByteReader,
  plain: PlainProxy,
  env: InboundEnv,
): Promise<void> {
  for (;;) {
    const request = await nextRequest(reader);
    if (request === null) {
      reader[Symbol.dispose]();
      plain.take(client);
      return;
    }
    const { version, persistent } = request;
    const destination = parseConnectTarget(request.target);
    if (destination === null)
      throw new Refusal(encodeAnswer(BAD_REQUEST, version, false), "CONNECT without host:port");
    const user = identify(client.accounts, request.authorization);
    if (user !== undefined) {
      reader[Symbol.dispose]();
      env.accept(tunnelSession(client.connection, { version, user, destination }, env));
      return;
    }
    const answer = encodeAnswer(AUTHENTICATION_REQUIRED, version, persistent);
    if (!persistent) throw new Refusal(answer, "no valid user name and password");
    client.connection.reply(Buffer.from(answer));
  }
}

async function nextRequest(reader: ByteReader): Promise<ConnectRequest | null> {
  try {
    return await reader.take(decodeConnect);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new Refusal(encodeAnswer(BAD_REQUEST, "1.1", false), error.message);
  }
}
