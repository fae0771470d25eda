/**
 * The one place that chooses by what a TLS connection is made: the runtime's libssl, `node:tls`, or the engine of
 * `tls13` for those who must look like a browser.
 */
import { NO_CHALLENGES, type TlsChallenges } from "#core/acme.ts";
import { kindOfBrowser } from "#core/browser-names.ts";
import { ConfigError, DialError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { EchOptions, TlsClient, TlsClientOptions, TlsProvider } from "#core/tls.ts";
import type { NativeTls, VerifiedChain } from "#platform/tls.ts";
import { RealityClient } from "#transport/reality/client.ts";
import { Tls13Client } from "#transport/tls13/client.ts";
import { EchClient } from "#transport/tls13/ech-client.ts";
import { Fingerprints } from "#transport/tls13/fingerprints/names.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { NativeClient } from "./native-client.ts";
import { ClientContexts } from "./native-contexts.ts";
import { makeNodeClient } from "./node-client.ts";

/** What is shown where a node names no browser, and must look like one. */
const DEFAULT_BROWSER = "chrome";

export interface TlsProviderOptions {
  /** As `TlsProvider` has it. */
  readonly allowsQuic?: boolean;
  /** What listeners answer to authorities that validate names. */
  readonly challenges?: TlsChallenges;
}

/**
 * `library` is asked when something speaks TLS first, and answers with null where all of it is to be done by `node:tls`.
 * With the library, `node:tls` still does what the library cannot: streams that are no kernel sockets, and settings that
 * it refuses.
 */
export function makeTlsProvider(
  library: () => NativeTls | null,
  { allowsQuic = true, challenges = NO_CHALLENGES }: TlsProviderOptions = {},
): TlsProvider {
  const clients = new Clients(library);
  return {
    allowsQuic,
    makeClient: (options, log) => clients.make(options, log),
    async openServer(options, files, log) {
      const { openTlsServer } = await import("./server.ts");
      const native = options.carriesHttp2 ? null : library();
      return openTlsServer(options, { files, log, native, challenges });
    },
  };
}

/** Nodes that name no browser show this one; empty: none. `none` on a node stays what it is. */
export function showingBrowser(provider: TlsProvider, name: string): TlsProvider {
  if (name === "") return provider;
  return {
    allowsQuic: provider.allowsQuic,
    makeClient: (options, log) =>
      provider.makeClient({ ...options, clientFingerprint: options.clientFingerprint || name }, log),
    openServer: (options, files, log) => provider.openServer(options, files, log),
  };
}

/** Without the library the engine has none that verifies chains. */
function refusingClient(key: string): TlsClient {
  return {
    open(stream) {
      stream.on("error", () => {}).destroy();
      const why = `${key}: Encrypted ClientHello needs a runtime with node:ffi on Linux, and not relay: portable`;
      return Promise.reject(new DialError("unsupported", why));
    },
  };
}

class Clients {
  readonly #library: () => NativeTls | null;
  readonly #fingerprints = new Fingerprints();
  #contexts: ClientContexts | null = null;

  constructor(library: () => NativeTls | null) {
    this.#library = library;
  }

  make(options: TlsClientOptions, log: Log): TlsClient {
    if (options.reality !== null) return this.#makeReality(options);
    if (options.ech !== null) return this.#makeEch(options, options.ech, log);
    const byNode = makeNodeClient(options);
    const native = this.#library();
    if (native === null) return byNode;
    const contexts = this.#contextsOf(native);
    const ofLibrary = new NativeClient(options, { native, contexts, byNode, log });
    const byLibrary = options.carriesHttp2
      ? { open: byNode.open.bind(byNode), recipe: () => ofLibrary.recipe() } // workers have no use for the runtime's
      : ofLibrary;
    const template = this.#template(options);
    if (template === null) return byLibrary;
    return new Tls13Client(options, {
      template,
      verify: this.#verifier(native, options),
      store: () => contexts.store(options.trust).address,
      older: byLibrary,
      log,
    });
  }

  #makeReality(options: TlsClientOptions): TlsClient {
    const { reality, where, clientFingerprint } = options;
    const native = this.#library();
    const template = this.#template(options) ?? this.#fingerprints.template(DEFAULT_BROWSER, reality?.hybrid);
    if (reality === null || template === null || kindOfBrowser(clientFingerprint) === "of TLS 1.2")
      throw new ConfigError(
        `${where}: client-fingerprint: ${clientFingerprint} has no ClientHello of TLS 1.3, which REALITY needs; have chrome, firefox, safari or ios`,
      );
    const authorities = native && {
      verify: this.#verifier(native, options),
      store: () => this.#contextsOf(native).store(options.trust).address,
    };
    return new RealityClient(options, reality, { template, authorities });
  }

  /** A node that names no browser with a ClientHello of TLS 1.3 shows the usual one: the library has no such hello. */
  #makeEch(options: TlsClientOptions, ech: EchOptions, log: Log): TlsClient {
    const native = this.#library();
    if (native === null) return refusingClient(`${options.where}: ech-opts`);
    const template = this.#template(options) ?? this.#fingerprints.template(DEFAULT_BROWSER);
    if (template === null) throw new Error(`${DEFAULT_BROWSER} has no template`);
    return new EchClient(options, ech, { template, verify: this.#verifier(native, options), log });
  }

  /** Null: no browser is to be seen, or none that can be shown. */
  #template({ clientFingerprint, reality }: TlsClientOptions): HelloTemplate | null {
    const kind = kindOfBrowser(clientFingerprint);
    if (kind === "none" || kind === "of TLS 1.2") return null;
    const name = kind === "unknown" ? DEFAULT_BROWSER : clientFingerprint;
    return this.#fingerprints.template(name, reality?.hybrid ?? true);
  }

  #contextsOf(native: NativeTls): ClientContexts {
    return (this.#contexts ??= new ClientContexts(native.clients));
  }

  #verifier(native: NativeTls, { trust }: TlsClientOptions): (chain: readonly Buffer[]) => VerifiedChain {
    const contexts = this.#contextsOf(native);
    return (chain) => native.verifier.verify(contexts.store(trust).address, chain);
  }
}
