/** The dialling side of TLS with Encrypted ClientHello, for one node: the real name is never sent in the clear. */
import type { KeyObject } from "node:crypto";
import type { Duplex } from "node:stream";
import { AuthError, DialError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { EchOptions, TlsClient, TlsClientOptions, TlsOpened, TlsOpening } from "#core/tls.ts";
import { itemAt } from "#lib/at.ts";
import { sniOf } from "#transport/tls/client-names.ts";
import { OlderVersion, TlsFault } from "./alerts.ts";
import { judgeChain, type Verify } from "./chain-judge.ts";
import { openTls13, readIdentity } from "./client.ts";
import type { ClientIdentity, ShownChain } from "./client-handshake.ts";
import { EchRejected } from "./ech/attempt.ts";
import { readEchConfigs } from "./ech/config.ts";
import { hideHello } from "./ech/offer.ts";
import { buildHello } from "./fingerprints/build-hello.ts";
import type { HelloTemplate } from "./fingerprints/template.ts";
import type { ClientHelloMessage } from "./offered-hello.ts";
import { JudgedChains } from "./judged-chains.ts";

export interface EchClientEnv {
  readonly template: HelloTemplate;
  /** Holds a chain against the authorities of the node. */
  readonly verify: Verify;
  readonly log: Log;
}

export class EchClient implements TlsClient {
  readonly #options: TlsClientOptions;
  readonly #ech: EchOptions;
  readonly #env: EchClientEnv;
  readonly #identity: ClientIdentity | null;
  readonly #judged = new JudgedChains();
  #hasWarned = false;

  /** Throws `ConfigError` where the client's certificate and key cannot be read. */
  constructor(options: TlsClientOptions, ech: EchOptions, env: EchClientEnv) {
    this.#options = options;
    this.#ech = ech;
    this.#env = env;
    this.#identity = readIdentity(options);
  }

  async open(stream: Duplex, opening: TlsOpening): Promise<TlsOpened> {
    const configs = await this.#configs(stream, opening.signal);
    try {
      return await this.#attempt(stream, configs, opening);
    } catch (error) {
      const rejected = rejectionIn(error);
      if (rejected === null) throw error;
      return await this.#openAgain(rejected, opening);
    }
  }

  async #configs(stream: Duplex, signal: AbortSignal): Promise<Buffer> {
    stream.on("error", () => {}); // while it has no reader
    try {
      return await this.#ech.configs(signal);
    } catch (error) {
      stream.destroy();
      throw error;
    }
  }

  /** Once, and for this connection alone: what a server says here could tell its clients apart (RFC 9849 §6.1.6). */
  async #openAgain({ retryConfigs }: EchRejected, opening: TlsOpening): Promise<TlsOpened> {
    if (retryConfigs === null)
      throw this.#failure(
        "the server has switched Encrypted ClientHello off, or its keys are others; nothing is sent without it",
      );
    if (opening.redial === undefined)
      throw this.#failure("the server has another configuration by now, and cannot be dialled again here");
    this.#warn();
    try {
      return await this.#attempt(await opening.redial(), retryConfigs, opening);
    } catch (error) {
      if (rejectionIn(error) === null) throw error;
      throw this.#failure("the server does not take the configuration that it has just given");
    }
  }

  async #attempt(stream: Duplex, configs: Buffer, opening: TlsOpening): Promise<TlsOpened> {
    const { hello, publicName } = this.#hide(stream, configs);
    const settings = {
      hello,
      identity: this.#identity,
      judge: (shown: ShownChain): KeyObject => this.#judge(shown, publicName),
    };
    try {
      return await openTls13(stream, settings, this.#options.serverName, opening);
    } catch (error) {
      if (!(error instanceof DialError) || !(error.cause instanceof OlderVersion)) throw error;
      throw this.#failure("the server speaks no TLS 1.3, which it needs", error);
    }
  }

  #hide(
    stream: Duplex,
    configs: Buffer,
  ): { readonly hello: ClientHelloMessage; readonly publicName: string } {
    const { alpn } = this.#options;
    const protocols = alpn.length === 0 ? null : alpn;
    try {
      const config = itemAt(readEchConfigs(configs), 0);
      const { publicName } = config;
      const cover = buildHello(this.#env.template, { serverName: publicName, protocols });
      return { hello: hideHello(cover, config, sniOf(this.#options)), publicName };
    } catch (cause) {
      stream.destroy();
      throw this.#failure("the configuration cannot be used", cause);
    }
  }

  /** A server that rejects is asked for the name that everybody sees, whatever else the node takes for granted. */
  #judge(shown: ShownChain, publicName: string): KeyObject {
    const { verify } = this.#env;
    if (!shown.isEchRejected) return judgeChain(shown, this.#options, verify, this.#judged);
    const { fingerprint } = this.#options;
    const asPublic = { serverName: publicName, nameCertVerify: null, skipCertVerify: false, fingerprint };
    try {
      return judgeChain(shown, asPublic, verify);
    } catch (error) {
      if (!(error instanceof TlsFault)) throw error;
      const why = `ech-opts: the server did not take the Encrypted ClientHello, and is not known to be ${publicName}: ${error.message}`;
      throw new TlsFault(error.alert, why, { cause: new AuthError(why, { cause: error.cause }) });
    }
  }

  #warn(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#env.log.warning(
      `${this.#options.where}: ech-opts: the server has another configuration than the one that is known here; each connection is made twice until config, or the HTTPS record, is renewed`,
    );
  }

  #failure(what: string, cause?: unknown): DialError {
    const message = `TLS to ${this.#options.serverName}: ech-opts: ${what}`;
    return new DialError("failed", message, cause === undefined ? {} : { cause });
  }
}

function rejectionIn(error: unknown): EchRejected | null {
  return error instanceof DialError && error.cause instanceof EchRejected ? error.cause : null;
}
