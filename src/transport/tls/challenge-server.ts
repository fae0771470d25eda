/**
 * TLS-ALPN-01 (RFC 8737): an authority that validates a name asks for the protocol `acme-tls/1` and is shown a certificate
 * that was made for it; everybody else is served as ever.
 */
import type { Duplex } from "node:stream";
import { createSecureContext } from "node:tls";
import type { TlsChallenges } from "#core/acme.ts";
import { ProtocolError } from "#core/errors.ts";
import type { KeyPair, TlsAccepting, TlsServer } from "#core/tls.ts";
import type { TlsContextSource } from "#core/tls-contexts.ts";
import { EXTENSION, readProtocols, type Extensions } from "#transport/tls13/extensions.ts";
import { serverNameOf } from "#transport/tls13/hello-choice.ts";
import { peekHello } from "./hello-peek.ts";
import { nodeAcceptor } from "./node-server.ts";
import { finishHandshake } from "./server-handshake.ts";

const ACME_TLS = "acme-tls/1";

/** Owns `plain` from here. As long as nothing is validated, it is asked without a look at the hello. */
export function answeringChallenges(plain: TlsServer, challenges: TlsChallenges): TlsServer {
  const accept = async (stream: Duplex, accepting: TlsAccepting = {}) => {
    if (challenges.isEmpty) return await plain.accept(stream, accepting);
    try {
      const pair = await peekHello(stream, accepting.signal, (extensions) => asked(extensions, challenges));
      if (pair !== null) await show(pair, stream, accepting.signal);
    } catch (error) {
      stream.destroy();
      throw error;
    }
    return await plain.accept(stream, accepting);
  };
  return {
    contexts: withoutWorkersMeanwhile(plain.contexts, challenges),
    accept,
    acceptConnection: (connection, accepting) =>
      challenges.isEmpty || connection.tls !== null
        ? plain.acceptConnection(connection, accepting)
        : accept(connection.stream(), accepting),
    keep: (connection, bypassable) => plain.keep(connection, bypassable),
    [Symbol.dispose]: () => plain[Symbol.dispose](),
  };
}

function asked(extensions: Extensions, challenges: TlsChallenges): KeyPair | null {
  const protocols = extensions.get(EXTENSION.alpn);
  if (protocols === undefined) return null;
  const [only, ...others] = readProtocols(protocols);
  return only === ACME_TLS && others.length === 0 ? challenges.pairFor(serverNameOf(extensions)) : null;
}

/** Always throws: the handshake is all that there is (RFC 8737 §3). */
async function show(pair: KeyPair, stream: Duplex, signal: AbortSignal | undefined): Promise<never> {
  const context = createSecureContext({ cert: pair.certificate, key: pair.privateKey });
  const handshake = nodeAcceptor({ alpn: [ACME_TLS], clientAuthType: "" })(stream, context, false);
  const shown = await finishHandshake(handshake, "", signal);
  shown.stream.on("error", () => {}).end();
  throw new ProtocolError("an authority has validated a name by TLS-ALPN-01");
}

/**
 * A worker cannot look at a hello. A listener that opens meanwhile goes without workers until the next reload. Over QUIC
 * no authority asks.
 */
function withoutWorkersMeanwhile(contexts: TlsContextSource, challenges: TlsChallenges): TlsContextSource {
  return {
    share: (onAlpn, isQuic = onAlpn === 0n) =>
      challenges.isEmpty || isQuic ? contexts.share(onAlpn, isQuic) : null,
    watch(onChange) {
      const both = [contexts.watch(onChange), challenges.watch(onChange)];
      return {
        [Symbol.dispose]() {
          for (const one of both) one[Symbol.dispose]();
        },
      };
    },
  };
}
