/** The TLS of a listener of QUIC: its certificate may change while it runs. */
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { SharedTlsContext, TlsContextSource } from "#core/tls-contexts.ts";
import type { ClientAuthType, TlsProvider } from "#core/tls.ts";
import { type QuicCiphers, quicLibrary } from "#platform/quic.ts";
import { serverTls } from "#transport/quic/native-tls.ts";
import type { OpenQuicTls } from "#transport/quic/tls.ts";
import type { TlsServerFields } from "#transport/tls/fields.ts";
import { readTlsServer } from "#transport/tls/server-options.ts";

export interface QuicTlsServerContext {
  /** `listener edge`: named in errors. */
  readonly where: string;
  /** What clients have to offer one of. */
  readonly alpn: readonly string[];
  readonly tls: TlsProvider;
  readonly files: SafeFiles;
  readonly log: Log;
  /** 0-RTT is taken: what a client says first may have been said before. Absent: it is not. */
  readonly mayBeEarly?: boolean;
}

/** Disposing it stops watching the files; connections go on. */
export interface QuicTlsServer extends Disposable {
  readonly open: OpenQuicTls;
  readonly ciphers: QuicCiphers;
}

/** With what another thread needs for the same. */
export interface SharableTlsServer extends QuicTlsServer {
  readonly contexts: TlsContextSource;
  readonly clientAuthType: ClientAuthType;
  /** Disposed of with this one. */
  keep(part: Disposable): void;
}

/** Throws `ConfigError` where there is no certificate, keys do not fit together, or this runtime has no QUIC. */
export async function openQuicTlsServer(
  fields: TlsServerFields,
  { where, alpn, tls, files, log, mayBeEarly = false }: QuicTlsServerContext,
): Promise<SharableTlsServer> {
  if ((fields["ech-key"] ?? "") !== "")
    throw new ConfigError(
      `${where}: ech-key: Encrypted ClientHello is not available over QUIC; remove the key`,
    );
  const options = readTlsServer(fields, where, { alpn });
  if (options === null) throw new ConfigError(`${where}: QUIC needs certificate and private-key`);
  const server = await tls.openServer({ ...options, minVersion: "TLSv1.3" }, files, log);
  const context = new CurrentContext(server.contexts, () =>
    log.warning(
      `${where}: the library of QUIC refuses the certificate, which node:tls takes: no client gets in`,
    ),
  );
  const open = serverTls(() => context.get(), options.clientAuthType, mayBeEarly);
  const library = tls.allowsQuic ? quicLibrary() : null;
  if (open === null || library === null) {
    server[Symbol.dispose]();
    throw new ConfigError(
      `${where}: type: QUIC needs a runtime with node:ffi and OpenSSL 3.5 on Linux, and not relay: portable`,
    );
  }
  const parts = new DisposableStack();
  return {
    open,
    ciphers: library.ciphers,
    contexts: server.contexts,
    clientAuthType: options.clientAuthType,
    keep: (part) => void parts.use(part),
    [Symbol.dispose]() {
      parts[Symbol.dispose]();
      context[Symbol.dispose]();
      server[Symbol.dispose]();
    },
  };
}

/** The library refuses to make a connection of it. */
const NONE = { address: 0n };

/** The context in force, made when the first client comes, and again behind a change of the files. */
class CurrentContext implements Disposable {
  readonly #source: TlsContextSource;
  readonly #watch: Disposable;
  readonly #onRefused: () => void;
  #shared: SharedTlsContext | null = null;
  #isStale = true;

  constructor(source: TlsContextSource, onRefused: () => void) {
    this.#source = source;
    this.#onRefused = onRefused;
    this.#watch = source.watch(() => (this.#isStale = true));
  }

  get(): { readonly address: bigint } {
    if (this.#isStale) this.#renew();
    return this.#shared ?? NONE;
  }

  #renew(): void {
    this.#isStale = false;
    const next = this.#source.share(0n);
    if (next === null) return this.#onRefused(); // the one before stays, where there is one
    this.#shared?.release();
    this.#shared = next;
  }

  [Symbol.dispose](): void {
    this.#watch[Symbol.dispose]();
    this.#shared?.release();
    this.#shared = null;
  }
}
