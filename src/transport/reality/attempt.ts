/** One handshake of a REALITY client, without I/O: what it says, and what it makes of who answers. */
import type { KeyObject } from "node:crypto";
import { AuthError } from "#core/errors.ts";
import type { RealityKeys } from "#core/tls-recipe.ts";
import { TlsFault } from "#transport/tls13/alerts.ts";
import { judgeChain, type Verify } from "#transport/tls13/chain-judge.ts";
import type { ShownChain } from "#transport/tls13/client-handshake.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import type { ClientHelloMessage } from "#transport/tls13/offered-hello.ts";
import { checkProof, type KnownLeaf, readLeafKey } from "./certificate.ts";
import { sealHello } from "./token.ts";

const NO_SIGNATURE =
  "the server has no ML-DSA-65 signature of the given key: mldsa65-verify is wrong, or somebody knows its X25519 key";

/** Whom a REALITY client wants to reach. */
export interface RealityPlace extends RealityKeys {
  /** The site. */
  readonly serverName: string;
  /** Empty: none is sent. */
  readonly sni: string;
}

/** What is known of the server. `site`: it is the real one, and must see a browser. */
export type RealityServerKind = "unknown" | "authentic" | "site" | "refused";

export class RealityAttempt {
  readonly hello: ClientHelloMessage;
  #server: RealityServerKind = "unknown";
  readonly #place: RealityPlace;
  readonly #authKey: Buffer;
  readonly #verify: Verify | null;
  readonly #known: KnownLeaf;

  /** `verify`: null: a foreign chain is not looked at. `known`: of the node. Throws where the public key cannot be used. */
  constructor(template: HelloTemplate, place: RealityPlace, verify: Verify | null, known: KnownLeaf) {
    // The browser's own protocols, whatever lies above: the server chooses none.
    const sealed = sealHello(buildHello(template, { serverName: place.sni, protocols: null }), place);
    this.hello = sealed.hello;
    this.#authKey = sealed.authKey;
    this.#place = place;
    this.#verify = verify;
    this.#known = known;
  }

  get server(): RealityServerKind {
    return this.#server;
  }

  /** As `ClientHandshakeOptions` has it. */
  readonly judge = (shown: ShownChain): KeyObject => {
    this.#server = "refused";
    const leaf = this.#known.find(shown) ?? readLeafKey(shown);
    const { mldsa65 } = this.#place;
    const proof = checkProof(shown, leaf, { authKey: this.#authKey, mldsa65 });
    if (proof === "no signature")
      throw new TlsFault("bad_certificate", NO_SIGNATURE, { cause: new AuthError(NO_SIGNATURE) });
    if (proof === "foreign") this.#judgeSite(shown);
    else if (mldsa65 === null) this.#known.keep(shown, leaf);
    this.#server = proof === "authentic" ? "authentic" : "site";
    return leaf.key;
  };

  #judgeSite(shown: ShownChain): void {
    const { serverName } = this.#place;
    const asBrowser = { serverName, nameCertVerify: null, skipCertVerify: false, fingerprint: null };
    try {
      if (this.#verify !== null) judgeChain(shown, asBrowser, this.#verify);
    } catch (error) {
      if (!(error instanceof TlsFault)) throw error;
      const why = `the server showed neither its own certificate nor one that is good for ${serverName} (${error.message}): public-key, short-id or servername is not what it expects, or somebody is in between`;
      throw new TlsFault(error.alert, why, { cause: new AuthError(why) });
    }
  }
}
