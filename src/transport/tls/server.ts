/** The accepting side of TLS: each handshake by the library that can do it. */
import type { Duplex } from "node:stream";
import type { OffloadedTls } from "#core/accepted.ts";
import type { TlsAccepted, TlsServer, TlsServerOptions } from "#core/tls.ts";
import { type LiveContexts, openLiveContexts, type TlsServerEnv } from "./live-contexts.ts";
import { answeringChallenges } from "./challenge-server.ts";
import { openEchServer } from "./ech-server.ts";
import { canGoNative, continueHandshake, acceptNatively } from "./native-server.ts";
import { KeptTlsClient } from "./kept-client.ts";
import { nodeAcceptor } from "./node-server.ts";
import { type Handshake, finishHandshake } from "./server-handshake.ts";

/** As `TlsProvider.openServer` says. */
export async function openTlsServer(options: TlsServerOptions, env: TlsServerEnv): Promise<TlsServer> {
  const { log, native } = env;
  log.debug(() => `TLS by ${native === null ? "node:tls" : "the runtime's libssl, past its streams"}`);
  const live = await openLiveContexts(options, env);
  const plain = answeringChallenges(serverWith(live, options, env), env.challenges);
  const { echKey, where, alpn } = options;
  return echKey === null ? plain : await openEchServer({ where, echKey, alpn }, { ...env, live, plain });
}

function serverWith(live: LiveContexts, options: TlsServerOptions, { native }: TlsServerEnv): TlsServer {
  const byNode = nodeAcceptor(options);
  const begin = (stream: Duplex, exact: boolean): Handshake => {
    const { node, ssl } = live.current();
    return native !== null && ssl !== null && canGoNative(stream)
      ? acceptNatively(stream, { native, context: ssl, exact })
      : byNode(stream, node, exact);
  };
  const resume = (handshake: OffloadedTls, exact: boolean): Handshake => {
    const { ssl } = live.current();
    if (native === null || ssl === null) throw new Error("a handshake of another library");
    return continueHandshake(handshake, { native, context: ssl, exact });
  };
  const finish = async (
    client: { destroy(): void },
    handshake: () => Handshake,
    signal?: AbortSignal,
  ): Promise<TlsAccepted> => {
    try {
      return await finishHandshake(handshake(), options.clientAuthType, signal);
    } catch (error) {
      client.destroy();
      throw error;
    }
  };
  return {
    contexts: live,
    accept: (stream, { signal, bypassable = false } = {}) =>
      finish(stream, () => begin(stream, bypassable), signal),
    acceptConnection: async (connection, { signal, bypassable = false } = {}) => {
      const { tls } = connection;
      connection.worker?.understood(0); // its first words, where a worker has shown them, are still to be read
      const handshake = () =>
        tls === null ? begin(connection.stream(), bypassable) : resume(tls, bypassable);
      return finish(connection, handshake, signal);
    },
    keep(connection, bypassable) {
      const { tls } = connection;
      if (tls?.object === undefined || native === null || options.clientAuthType !== "") return null;
      const kept = { contexts: native.contexts, exact: bypassable };
      return new KeptTlsClient(connection, kept, () => resume(tls, bypassable));
    },
    [Symbol.dispose]: () => live[Symbol.dispose](),
  };
}
