/** The one place that chooses by what a TLS connection is made: the runtime's libssl, or `node:tls`. */
import type { TlsProvider } from "#core/tls.ts";
import type { NativeTls } from "#platform/tls.ts";
import { NativeClient } from "./native-client.ts";
import { ClientContexts } from "./native-contexts.ts";
import { makeNodeClient } from "./node-client.ts";
import { openTlsServer } from "./server.ts";

/**
 * `library` is asked when something speaks TLS first, and answers with null where all of it is to be done by `node:tls`.
 * With the library, `node:tls` still does what the library cannot: streams that are no kernel sockets, and settings that
 * it refuses.
 */
export function makeTlsProvider(library: () => NativeTls | null): TlsProvider {
  let contexts: ClientContexts | null = null;
  return {
    makeClient(options, log) {
      const byNode = makeNodeClient(options);
      const native = options.carriesHttp2 ? null : library();
      if (native === null) return byNode;
      contexts ??= new ClientContexts(native.clients);
      return new NativeClient(options, { native, contexts, byNode, log });
    },
    openServer: (options, files, log) =>
      openTlsServer(options, { files, log, native: options.carriesHttp2 ? null : library() }),
  };
}
