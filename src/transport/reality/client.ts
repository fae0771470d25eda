/** The dialling side of REALITY, for one node. */
import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { AuthError, DialError } from "#core/errors.ts";
import type { RealityOptions, TlsClient, TlsClientOptions, TlsOpened, TlsOpening } from "#core/tls.ts";
import type { BrowserTls, TlsRecipe } from "#core/tls-recipe.ts";
import { sniOf } from "#transport/tls/client-names.ts";
import type { Verify } from "#transport/tls13/chain-judge.ts";
import { openTls13 } from "#transport/tls13/client.ts";
import { wordOf } from "#transport/tls13/fingerprints/names.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { RealityAttempt } from "./attempt.ts";
import { KnownLeaf } from "./certificate.ts";

export interface RealityClientEnv {
  readonly template: HelloTemplate;
  /** The authorities of the node; null: without the library, a foreign chain is not looked at. */
  readonly authorities: RealityAuthorities | null;
}

export interface RealityAuthorities {
  readonly verify: Verify;
  /** Their address; they live as long as the options. Throws where they cannot be read. */
  readonly store: () => bigint;
}

const REAL_CERTIFICATE =
  "the server showed the real site's certificate and not its own: public-key, short-id, servername or client-version is not what it expects, its clock differs, or somebody is in between";

export class RealityClient implements TlsClient {
  readonly #options: TlsClientOptions;
  readonly #reality: RealityOptions;
  readonly #env: RealityClientEnv;
  readonly #known = new KnownLeaf();
  #recipe: BrowserTls | null = null;

  constructor(options: TlsClientOptions, reality: RealityOptions, env: RealityClientEnv) {
    this.#options = options;
    this.#reality = reality;
    this.#env = env;
  }

  /** Null where the hello was drawn for this program. */
  recipe(): TlsRecipe | null {
    const browser = wordOf(this.#env.template);
    return browser === null ? null : (this.#recipe ??= this.#makeRecipe(browser));
  }

  /** Null: without the library, or its authorities. */
  #makeRecipe(browser: string): BrowserTls | null {
    const store = this.#store();
    if (store === null) return null;
    const { serverName } = this.#options;
    const { publicKey, shortId, clientVersion, mldsa65 } = this.#reality;
    return {
      kind: "records",
      id: randomUUID(),
      sni: sniOf(this.#options),
      server: { serverName, nameCertVerify: null, skipCertVerify: false, fingerprint: null },
      browser,
      store,
      protocols: null,
      // Copies: threads get all of the memory that they lie in.
      reality: {
        publicKey: Uint8Array.from(publicKey),
        shortId: Uint8Array.from(shortId),
        clientVersion,
        mldsa65: mldsa65 && Uint8Array.from(mldsa65),
      },
    };
  }

  #store(): bigint | null {
    try {
      return this.#env.authorities?.store() ?? null;
    } catch {
      return null;
    }
  }

  async open(stream: Duplex, opening: TlsOpening): Promise<TlsOpened> {
    const { serverName } = this.#options;
    const attempt = this.#attempt();
    const { hello, judge } = attempt;
    const opened = await openTls13(stream, { hello, identity: null, judge }, serverName, opening);
    if (attempt.server === "authentic") return opened;
    const page = { host: serverName, path: this.#reality.spiderX, alpn: opened.alpn };
    const { visitAsBrowser } = await import("./decoy.ts");
    await visitAsBrowser(opened.stream, page, opening.signal);
    const cause = new AuthError(REAL_CERTIFICATE);
    throw new DialError("failed", `REALITY to ${serverName}: ${REAL_CERTIFICATE}`, { cause });
  }

  #attempt(): RealityAttempt {
    const { serverName } = this.#options;
    const { template, authorities } = this.#env;
    try {
      const place = { ...this.#reality, serverName, sni: sniOf(this.#options) };
      return new RealityAttempt(template, place, authorities?.verify ?? null, this.#known);
    } catch (cause) {
      throw new DialError("failed", `REALITY to ${serverName}: public-key cannot be used`, { cause });
    }
  }
}
