/** Certificates and keys in force, from files that may change. */
import { createSecureContext, DEFAULT_CIPHERS, type SecureContext } from "node:tls";
import type { TlsChallenges } from "#core/acme.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import { isPemText, type SafeFiles } from "#core/files.ts";
import type { KeyPair, TlsServerOptions } from "#core/tls.ts";
import type { TlsContextSource } from "#core/tls-contexts.ts";
import type { Log } from "#core/log.ts";
import type { NativeTls, ServerContextOptions, SslContext } from "#platform/tls.ts";

export interface Contexts {
  readonly node: SecureContext;
  /** Null where the library is not spoken to, or cannot do what is asked for. */
  readonly ssl: SslContext | null;
  /** What that was made of; the files may be half changed by now. */
  readonly settings: ServerContextOptions | null;
  readonly pair: KeyPair;
}

export interface LiveContexts extends Disposable, TlsContextSource {
  current(): Contexts;
}

/** What a listener's TLS is made with. */
export interface TlsServerEnv {
  readonly files: SafeFiles;
  readonly log: Log;
  /** Null: by `node:tls` alone, which also takes what is no kernel socket, or has been read from. */
  readonly native: NativeTls | null;
  readonly challenges: TlsChallenges;
}

/** Replaces them when a file changes. Half a change (a new key, the old certificate) keeps the old. Throws `ConfigError`. */
export async function openLiveContexts(
  options: TlsServerOptions,
  context: TlsServerEnv,
): Promise<LiveContexts> {
  const { files, log, native } = context;
  const texts: Texts = {
    cert: await files.readPem(options.certificate),
    key: await files.readPem(options.privateKey),
    ...(options.clientAuthCert === null ? {} : { ca: await files.readPem(options.clientAuthCert) }),
  };
  let contexts: Contexts;
  try {
    contexts = make(texts, options, context);
  } catch (cause) {
    throw new ConfigError(`certificate and private-key cannot be used: ${messageOf(cause)}`, { cause });
  }
  const reported = new Set<() => void>();
  const watch = (source: string | null, ...parts: readonly (keyof Texts)[]): Disposable[] => {
    if (source === null || isPemText(source)) return [];
    const onChange = (pem: string) => {
      for (const part of parts) texts[part] = pem;
      try {
        const next = make(texts, options, context);
        contexts.ssl?.[Symbol.dispose]();
        contexts = next;
        for (const onChange of reported) onChange();
        log.info(`${source}: changed, used for new connections`);
      } catch (error) {
        log.warning(`${source}: changed, but certificate and key do not fit (yet): ${messageOf(error)}`);
      }
    };
    return [files.watchPem(source, onChange)];
  };
  const { certificate, privateKey } = options;
  const watches = [
    // One file with both changes in one step.
    ...(certificate === privateKey
      ? watch(certificate, "cert", "key")
      : [...watch(certificate, "cert"), ...watch(privateKey, "key")]),
    ...watch(options.clientAuthCert, "ca"),
  ];
  return {
    current: () => contexts,
    share(onAlpn) {
      const { ssl, settings } = contexts;
      return ssl === null || settings === null || native === null
        ? null
        : native.contexts.share(ssl, settings, onAlpn);
    },
    watch(onChange) {
      reported.add(onChange);
      return { [Symbol.dispose]: () => void reported.delete(onChange) };
    },
    [Symbol.dispose]() {
      for (const one of watches) one[Symbol.dispose]();
      contexts.ssl?.[Symbol.dispose]();
    },
  };
}

interface Texts {
  cert: string;
  key: string;
  ca?: string;
}

/** What `node:tls` refuses is refused; what only the other way cannot do is left to `node:tls`. */
function make(texts: Texts, options: TlsServerOptions, { log, native }: TlsServerEnv): Contexts {
  const { minVersion } = options;
  const node = createSecureContext({ ...texts, minVersion });
  const pair = { certificate: texts.cert, privateKey: texts.key };
  if (native === null) return { node, ssl: null, settings: null, pair };
  try {
    const settings = {
      certificate: texts.cert,
      privateKey: texts.key,
      alpn: options.alpn,
      minVersion,
      ciphers: DEFAULT_CIPHERS,
      asksClient: options.clientAuthType !== "",
      authorities: texts.ca ?? null,
    };
    return { node, ssl: native.contexts.make(settings), settings, pair };
  } catch (error) {
    log.debug(() => `TLS by node:tls: ${messageOf(error)}`);
    return { node, ssl: null, settings: null, pair };
  }
}
