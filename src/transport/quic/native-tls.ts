/** `QuicTls` by the runtime's own libssl. */
import { ConfigError, DialError } from "#core/errors.ts";
import type { ClientAuthType, TlsClientOptions } from "#core/tls.ts";
import { type QuicCiphers, quicLibrary, type QuicLibrary } from "#platform/quic.ts";
import type { SslHandle } from "#platform/tls.ts";
import { sniOf } from "#transport/tls/client-names.ts";
import { readTlsClient, type TlsClientContext } from "#transport/tls/client-options.ts";
import type { TlsClientFields } from "#transport/tls/fields.ts";
import { wireOf } from "#transport/tls/native-client.ts";
import { ClientContexts } from "#transport/tls/native-contexts.ts";
import { clientRefusal } from "#transport/tls/server-handshake.ts";
import { ServerCheck } from "#transport/tls/server-check.ts";
import type { OpenQuicTls } from "./tls.ts";

/** The dialling side of one node. Throws `ConfigError` for TLS keys that do not fit, and where this runtime has no QUIC. */
export async function readQuicTlsClient(
  fields: TlsClientFields,
  context: TlsClientContext & { readonly portable?: boolean | undefined },
): Promise<OpenQuicTls> {
  if (fields["ech-opts"]?.enable === true)
    throw new ConfigError(
      `proxy ${context.node}: ech-opts: Encrypted ClientHello is not available over QUIC; remove ech-opts, it is never silently left out`,
    );
  const options = await readTlsClient(fields, { ...context, minVersion: "TLSv1.3" });
  const found = context.portable === true ? null : quicLibrary();
  if (found === null)
    throw new ConfigError(
      `proxy ${context.node}: type: QUIC needs a runtime with node:ffi and OpenSSL 3.5 on Linux, and not relay: portable`,
    );
  return clientTls(found, options);
}

/** What a dialling side needs of this runtime. */
export interface QuicClientCrypto {
  readonly ciphers: QuicCiphers;
  readonly openTls: OpenQuicTls;
}

/**
 * For those who are no nodes. Null: this runtime has no QUIC. Of `options.minVersion` only TLS 1.3 is spoken. `mayBeEarly`:
 * 0-RTT is used with servers that offer it; what is said so may arrive twice.
 */
export function quicClientCrypto(options: TlsClientOptions, mayBeEarly = false): QuicClientCrypto | null {
  const found = quicLibrary();
  return found === null ? null : { ciphers: found.ciphers, openTls: clientTls(found, options, mayBeEarly) };
}

function clientTls(found: QuicLibrary, options: TlsClientOptions, mayBeEarly = false): OpenQuicTls {
  const { tls, clients, contexts } = found;
  const check = new ServerCheck(clients, options);
  const hello = { serverName: sniOf(options), alpn: wireOf(options.alpn), tickets: tls.makeTickets() };
  let context: SslHandle | null = null;
  return (parameters, events) => {
    context ??= contextsOf(found).of(options, check.belief);
    const session = tls.open(context.address, hello, parameters, events, mayBeEarly);
    return {
      get isDone() {
        return session.isDone;
      },
      begin: () => session.begin(),
      give: (level, bytes) => session.give(level, bytes),
      refusal() {
        // A session is kept only where the server was found to be the right one, by this node.
        const refusal = session.isResumed ? null : check.refusal(session.object);
        if (refusal === null) session.keepTickets();
        return refusal;
      },
      get isResumed() {
        return session.isResumed;
      },
      get remembered() {
        return session.remembered;
      },
      get isEarlyAccepted() {
        return session.isEarlyAccepted;
      },
      alpn: () => contexts.alpnOf(session.object),
      exportKey: (label, about, size) => session.exportKey(label, about, size),
      explain: (failure) => (session.ssl === 0n ? failure : check.explain(session.ssl, failure.message)),
      [Symbol.dispose]: () => session[Symbol.dispose](),
    };
  };
}

/**
 * Keys for the first two are shown at once (`*`): a server that knows only the second would ask for another hello, which takes
 * a round trip, and some cannot ask.
 */
const GROUPS = "*X25519MLKEM768:*X25519:P-256:P-384";

interface Shared {
  contexts?: ClientContexts;
}
/** Nodes that are alike share their contexts. */
const shared: Shared = {};

function contextsOf({ clients }: QuicLibrary): ClientContexts {
  return (shared.contexts ??= new ClientContexts(clients, GROUPS));
}

/**
 * The accepting side; `context` is asked for the one in force whenever a connection comes. `mayBeEarly`: 0-RTT is taken. Null:
 * this runtime has no QUIC.
 */
export function serverTls(
  context: () => { readonly address: bigint },
  clientAuthType: ClientAuthType = "",
  mayBeEarly = false,
): OpenQuicTls | null {
  const found = quicLibrary();
  if (found === null) return null;
  const { tls, contexts } = found;
  return (parameters, events) => {
    const session = tls.open(context().address, null, parameters, events, mayBeEarly);
    return {
      get isDone() {
        return session.isDone;
      },
      begin: () => {},
      give: (level, bytes) => session.give(level, bytes),
      get isResumed() {
        return session.isResumed;
      },
      get remembered() {
        return session.remembered;
      },
      get isEarlyAccepted() {
        return session.isEarlyAccepted;
      },
      refusal: () => clientRefusal(contexts.clientCertificate(session.object), clientAuthType),
      alpn: () => contexts.alpnOf(session.object),
      exportKey: (label, about, size) => session.exportKey(label, about, size),
      explain: (failure) => new DialError("failed", `handshake: ${failure.message}`),
      [Symbol.dispose]: () => session[Symbol.dispose](),
    };
  };
}
