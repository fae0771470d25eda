/**
 * The accepting side of TLS with Encrypted ClientHello. No library here has it, so a client whose hello has that extension
 * is answered by the TLS 1.3 engine; everybody else by the libraries, as ever.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Duplex } from "node:stream";
import { messageOf } from "#core/errors.ts";
import { isPemText, type SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { KeyPair, TlsAccepted, TlsAccepting, TlsServer } from "#core/tls.ts";
import { encodeEchConfigs } from "#transport/tls13/ech/config.ts";
import { type EchKey, parseEchKeys } from "#transport/tls13/ech/keys.ts";
import { EXTENSION, type Extensions } from "#transport/tls13/extensions.ts";
import { offersTls13 } from "#transport/tls13/hello-choice.ts";
import { ServerConnection } from "#transport/tls13/server-connection.ts";
import type { ServerIdentity } from "#transport/tls13/server-handshake.ts";
import { RecordStream } from "#transport/record-stream.ts";
import type { LiveContexts } from "./live-contexts.ts";
import { peekHello } from "./hello-peek.ts";
import { finishHandshake, type HandshakeFacts } from "./server-handshake.ts";

export interface EchServerOptions {
  /** Named in errors: `listener l`. */
  readonly where: string;
  /** PEM text or path. */
  readonly echKey: string;
  readonly alpn: readonly string[];
}

export interface EchServerEnv {
  readonly files: SafeFiles;
  readonly log: Log;
  readonly live: LiveContexts;
  /** Answers who does not hide anything. */
  readonly plain: TlsServer;
}

/** Owns `plain` from here. Throws `ConfigError` where the keys cannot be read. */
export async function openEchServer(options: EchServerOptions, env: EchServerEnv): Promise<TlsServer> {
  const { plain } = env;
  try {
    const keys = await openKeys(options, env);
    return new EchServer(options, env, keys);
  } catch (error) {
    plain[Symbol.dispose]();
    throw error;
  }
}

interface LiveKeys extends Disposable {
  current(): readonly EchKey[];
}

/** Replaced when the file changes to something that can be read. */
async function openKeys({ echKey, where }: EchServerOptions, env: EchServerEnv): Promise<LiveKeys> {
  const { files, log } = env;
  const name = `${where}: ech-key`;
  let keys = parseEchKeys(await files.readPem(echKey), name);
  const current = () => keys;
  if (isPemText(echKey)) return { current, [Symbol.dispose]() {} };
  const watch = files.watchPem(echKey, (pem) => {
    try {
      keys = parseEchKeys(pem, name);
      log.info(`${echKey}: changed, used for new connections`);
    } catch (error) {
      log.warning(`${echKey}: changed, but cannot be used: ${messageOf(error)}`);
    }
  });
  return { current, [Symbol.dispose]: () => watch[Symbol.dispose]() };
}

class EchServer implements TlsServer {
  /** A worker cannot look at a hello, so none is given a context. */
  readonly contexts = { share: () => null, watch: () => ({ [Symbol.dispose]() {} }) };
  readonly #options: EchServerOptions;
  readonly #env: EchServerEnv;
  readonly #keys: LiveKeys;
  #identity: { readonly of: KeyPair; readonly identity: ServerIdentity } | null = null;

  constructor(options: EchServerOptions, env: EchServerEnv, keys: LiveKeys) {
    this.#options = options;
    this.#env = env;
    this.#keys = keys;
  }

  async accept(stream: Duplex, accepting: TlsAccepting = {}): Promise<TlsAccepted> {
    try {
      if (await hasEch(stream, accepting.signal)) return await this.#acceptOwn(stream, accepting);
    } catch (error) {
      stream.destroy();
      throw error;
    }
    return await this.#env.plain.accept(stream, accepting);
  }

  acceptConnection: TlsServer["acceptConnection"] = (connection, accepting) =>
    this.accept(connection.stream(), accepting);

  keep(): null {
    return null;
  }

  [Symbol.dispose](): void {
    this.#keys[Symbol.dispose]();
    this.#env.plain[Symbol.dispose]();
  }

  async #acceptOwn(below: Duplex, { signal, bypassable = false }: TlsAccepting): Promise<TlsAccepted> {
    const echKeys = this.#keys.current();
    const connection = new ServerConnection({
      identity: this.#currentIdentity(),
      protocols: this.#options.alpn,
      echKeys,
      retryConfigs: encodeEchConfigs(echKeys.map(({ config }) => config.raw)),
    });
    const stream = new RecordStream(below, connection);
    const facts = (): HandshakeFacts => ({
      alpn: connection.choice?.alpn ?? null,
      serverName: connection.choice?.serverName || null,
      bypass: bypassable ? stream : null,
      client: { given: false, refusal: null },
    });
    const finished = finishHandshake({ isDone: false, stream, below, facts }, "", signal);
    stream.begin();
    below.resume();
    return await finished;
  }

  /** Of the certificate in force; it may have changed. */
  #currentIdentity(): ServerIdentity {
    const { pair } = this.#env.live.current();
    if (this.#identity?.of !== pair) this.#identity = { of: pair, identity: readServerIdentity(pair) };
    return this.#identity.identity;
  }
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Of what the library has taken, so it can be read. */
function readServerIdentity({ certificate, privateKey }: KeyPair): ServerIdentity {
  const chain = (certificate.match(PEM_CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem).raw);
  return { chain, key: createPrivateKey(privateKey) };
}

/** Is this a hello that hides another one? All that is read stays in the stream. */
async function hasEch(stream: Duplex, signal: AbortSignal | undefined): Promise<boolean> {
  const asks = (extensions: Extensions): boolean =>
    extensions.has(EXTENSION.encryptedClientHello) && offersTls13(extensions);
  return (await peekHello(stream, signal, asks)) === true;
}
