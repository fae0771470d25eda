/** The dialling side of TLS with a browser's ClientHello, for one node. */
import { createPrivateKey, randomUUID, X509Certificate } from "node:crypto";
import type { Duplex } from "node:stream";
import { ConfigError, DialError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { TlsClient, TlsClientOptions, TlsOpened, TlsOpening } from "#core/tls.ts";
import type { BrowserTls, TlsRecipe } from "#core/tls-recipe.ts";
import { RecordStream } from "#transport/record-stream.ts";
import { finishOpening, refuseIfAborted } from "#transport/tls/client-handshake.ts";
import { sniOf } from "#transport/tls/client-names.ts";
import { OlderVersion } from "./alerts.ts";
import { judgeChain, type Verify } from "./chain-judge.ts";
import { ClientConnection, type ClientConnectionOptions } from "./client-connection.ts";
import type { ClientIdentity } from "./client-handshake.ts";
import { buildHello, canResume } from "./fingerprints/build-hello.ts";
import { wordOf } from "./fingerprints/names.ts";
import type { HelloTemplate } from "./fingerprints/template.ts";
import { JudgedChains } from "./judged-chains.ts";
import { Sessions } from "./sessions.ts";

export interface Tls13ClientEnv {
  readonly template: HelloTemplate;
  /** Holds a chain against the authorities of the node. */
  readonly verify: Verify;
  /** The address of these, which live as long as the options. Throws where they cannot be read. */
  readonly store: () => bigint;
  /** For servers that speak TLS 1.2 alone. */
  readonly older: TlsClient;
  readonly log: Log;
}

export class Tls13Client implements TlsClient {
  readonly #options: TlsClientOptions;
  readonly #env: Tls13ClientEnv;
  readonly #identity: ClientIdentity | null;
  readonly #judged = new JudgedChains();
  readonly #sessions = new Sessions();
  /** The server was found to speak TLS 1.2 alone. */
  #isOlder = false;
  #recipe: BrowserTls | null = null;

  /** Throws `ConfigError` where the client's certificate and key cannot be read. */
  constructor(options: TlsClientOptions, env: Tls13ClientEnv) {
    this.#options = options;
    this.#env = env;
    this.#identity = readIdentity(options);
  }

  /** Null where the hello was drawn for this program, and where a certificate of our own may be asked for. */
  recipe(): TlsRecipe | null {
    if (this.#isOlder) return this.#env.older.recipe?.() ?? null;
    const browser = this.#identity === null ? wordOf(this.#env.template) : null;
    return browser === null ? null : (this.#recipe ??= this.#makeRecipe(browser));
  }

  /** Null: without its authorities every dial says why. */
  #makeRecipe(browser: string): BrowserTls | null {
    const { serverName, nameCertVerify, fingerprint, skipCertVerify, alpn } = this.#options;
    const server = { serverName, nameCertVerify, fingerprint, skipCertVerify };
    const store = fingerprint === null && skipCertVerify ? 0n : this.#store();
    if (store === null) return null;
    return {
      kind: "records",
      id: randomUUID(),
      sni: sniOf(this.#options),
      server,
      browser,
      store,
      protocols: alpn.length === 0 ? null : alpn,
      reality: null,
    };
  }

  #store(): bigint | null {
    try {
      return this.#env.store();
    } catch {
      return null;
    }
  }

  async open(stream: Duplex, opening: TlsOpening): Promise<TlsOpened> {
    if (this.#isOlder) return await this.#env.older.open(stream, opening);
    const { serverName, alpn } = this.#options;
    const { template, verify } = this.#env;
    const resumes = canResume(template);
    const session = resumes ? this.#sessions.take() : null;
    const hello = buildHello(template, {
      serverName: sniOf(this.#options),
      protocols: alpn.length === 0 ? null : alpn,
      session,
    });
    const settings: ClientConnectionOptions = {
      hello,
      identity: this.#identity,
      ...(resumes ? { sessions: this.#sessions } : {}),
      judge: (shown) => judgeChain(shown, this.#options, verify, this.#judged),
    };
    try {
      return await openTls13(stream, settings, serverName, opening);
    } catch (error) {
      if (session !== null) this.#sessions.clear();
      if (!(error instanceof DialError) || !(error.cause instanceof OlderVersion)) throw error;
      return await this.#openOlder(error, opening);
    }
  }

  async #openOlder(error: DialError, opening: TlsOpening): Promise<TlsOpened> {
    if (this.#options.minVersion === "TLSv1.3") throw error;
    if (opening.redial === undefined) {
      this.#remember();
      throw error;
    }
    const opened = await this.#env.older.open(await opening.redial(), opening);
    // Anybody on the way can say an answer of TLS 1.2; that a handshake was done is the server's own word.
    if (opened.isOlder === true) this.#remember();
    return opened;
  }

  #remember(): void {
    const { serverName, where } = this.#options;
    if (!this.#isOlder)
      this.#env.log.warning(
        `${where}: client-fingerprint: ${serverName} speaks TLS 1.2 alone; its handshakes show the runtime's TLS library`,
      );
    this.#isOlder = true;
  }
}

/** One handshake of the engine. Failures are `DialError`; the stream is destroyed then. */
export async function openTls13(
  below: Duplex,
  settings: ClientConnectionOptions,
  serverName: string,
  { signal, bypassable = false }: TlsOpening,
): Promise<TlsOpened & { readonly stream: RecordStream }> {
  refuseIfAborted(below, serverName, signal);
  const connection = new ClientConnection(settings);
  const stream = new RecordStream(below, connection);
  const opening = { stream, below, event: "secure", refusal: () => null } as const;
  const opened = finishOpening(opening, serverName, signal);
  stream.begin();
  await opened;
  return { stream, alpn: connection.agreement?.alpn ?? null, bypass: bypassable ? stream : null };
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Null: the node has none. Throws `ConfigError` where certificate and key cannot be read. */
export function readIdentity({ keyPair, where }: TlsClientOptions): ClientIdentity | null {
  if (keyPair === null) return null;
  const { certificate, privateKey } = keyPair;
  try {
    const chain = (certificate.match(PEM_CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
    const key = createPrivateKey(privateKey);
    if (chain[0]?.checkPrivateKey(key) !== true) throw new Error("they do not fit");
    return { chain: chain.map(({ raw }) => raw), key };
  } catch (cause) {
    throw new ConfigError(`${where}: certificate and private-key do not fit together`, { cause });
  }
}
