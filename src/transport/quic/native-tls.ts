/** `QuicTls` by the runtime's own libssl. */
import { ConfigError, DialError } from "#core/errors.ts";
import type { TlsClientOptions } from "#core/tls.ts";
import { quicTls, type QuicTlsLibrary } from "#platform/quic.ts";
import { nativeTls, type NativeTls, type SslContext, type SslHandle } from "#platform/tls.ts";
import { readTlsClient, sniOf, type TlsClientContext } from "#transport/tls/client-options.ts";
import type { TlsClientFields } from "#transport/tls/fields.ts";
import { wireOf } from "#transport/tls/native-client.ts";
import { ClientContexts } from "#transport/tls/native-contexts.ts";
import { ServerCheck } from "#transport/tls/server-check.ts";
import type { OpenQuicTls } from "./tls.ts";

interface Engine {
  readonly library: QuicTlsLibrary;
  readonly native: NativeTls;
}

function engine(): Engine | null {
  const library = quicTls();
  const native = nativeTls();
  return library === null || native === null ? null : { library, native };
}

/** The dialling side of one node. Throws `ConfigError` for TLS keys that do not fit, and where this runtime has no QUIC. */
export async function readQuicTlsClient(
  fields: TlsClientFields,
  context: TlsClientContext & { readonly portable?: boolean | undefined },
): Promise<OpenQuicTls> {
  const options = await readTlsClient(fields, { ...context, minVersion: "TLSv1.3" });
  const found = context.portable === true ? null : engine();
  if (found === null)
    throw new ConfigError(
      `proxy ${context.node}: type: QUIC needs a runtime with node:ffi and OpenSSL 3.5 on Linux, and not relay: portable`,
    );
  return clientTls(found, options);
}

function clientTls(found: Engine, options: TlsClientOptions): OpenQuicTls {
  const { library, native } = found;
  const check = new ServerCheck(native.clients, options);
  const hello = { serverName: sniOf(options), alpn: wireOf(options.alpn) };
  let context: SslHandle | null = null;
  return (parameters, events) => {
    context ??= contextsOf(native).of(options, check.belief);
    const session = library.open(context.address, hello, parameters, events);
    return {
      get isDone() {
        return session.isDone;
      },
      begin: () => session.begin(),
      give: (level, bytes) => session.give(level, bytes),
      refusal: () => check.refusal(session.ssl),
      alpn: () => native.contexts.alpnOf(session.ssl),
      explain: (failure) => (session.ssl === 0n ? failure : check.explain(session.ssl, failure.message)),
      [Symbol.dispose]: () => session[Symbol.dispose](),
    };
  };
}

interface Shared {
  contexts?: ClientContexts;
}
/** Nodes that are alike share their contexts. */
const shared: Shared = {};

function contextsOf({ clients }: NativeTls): ClientContexts {
  return (shared.contexts ??= new ClientContexts(clients));
}

/** The accepting side; `context` is asked for the one in force whenever a connection comes. Null: this runtime has no QUIC. */
export function serverTls(context: () => SslContext): OpenQuicTls | null {
  const found = engine();
  if (found === null) return null;
  const { library, native } = found;
  return (parameters, events) => {
    const session = library.open(context().address, null, parameters, events);
    return {
      get isDone() {
        return session.isDone;
      },
      begin: () => {},
      give: (level, bytes) => session.give(level, bytes),
      refusal: () => null,
      alpn: () => native.contexts.alpnOf(session.ssl),
      explain: (failure) => new DialError("failed", `handshake: ${failure.message}`),
      [Symbol.dispose]: () => session[Symbol.dispose](),
    };
  };
}
