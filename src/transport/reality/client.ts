/** The dialling side of REALITY, for one node. */
import type { KeyObject } from "node:crypto";
import type { Duplex } from "node:stream";
import { AuthError, DialError } from "#core/errors.ts";
import type { RealityOptions, TlsClient, TlsClientOptions, TlsOpened, TlsOpening } from "#core/tls.ts";
import { sniOf } from "#transport/tls/client-names.ts";
import { TlsFault } from "#transport/tls13/alerts.ts";
import { judgeChain, type Verify } from "#transport/tls13/chain-judge.ts";
import { openTls13 } from "#transport/tls13/client.ts";
import type { ShownChain } from "#transport/tls13/client-handshake.ts";
import { buildHello } from "#transport/tls13/fingerprints/build-hello.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { keyOfLeaf, readLeaf } from "#transport/tls13/leaf-certificate.ts";
import { checkProof } from "./certificate.ts";
import { sealHello } from "./token.ts";

export interface RealityClientEnv {
  readonly template: HelloTemplate;
  /** Holds a chain against the authorities of the node; null: without the library, a foreign chain is not looked at. */
  readonly verify: Verify | null;
}

const REAL_CERTIFICATE =
  "the server showed the real site's certificate and not its own: public-key, short-id, servername or client-version is not what it expects, its clock differs, or somebody is in between";
const NO_SIGNATURE =
  "the server has no ML-DSA-65 signature of the given key: mldsa65-verify is wrong, or somebody knows its X25519 key";

export class RealityClient implements TlsClient {
  readonly #options: TlsClientOptions;
  readonly #reality: RealityOptions;
  readonly #env: RealityClientEnv;

  constructor(options: TlsClientOptions, reality: RealityOptions, env: RealityClientEnv) {
    this.#options = options;
    this.#reality = reality;
    this.#env = env;
  }

  async open(stream: Duplex, opening: TlsOpening): Promise<TlsOpened> {
    const { serverName } = this.#options;
    const { hello, authKey } = this.#hello();
    let isAuthentic = false;
    const judge = (shown: ShownChain): KeyObject => {
      const key = keyOfLeaf(readLeaf(shown));
      isAuthentic = this.#judge(shown, key, authKey);
      return key;
    };
    const opened = await openTls13(stream, { hello, identity: null, judge }, serverName, opening);
    if (isAuthentic) return opened;
    const page = { host: serverName, path: this.#reality.spiderX, alpn: opened.alpn };
    const { visitAsBrowser } = await import("./decoy.ts");
    await visitAsBrowser(opened.stream, page, opening.signal);
    const cause = new AuthError(REAL_CERTIFICATE);
    throw new DialError("failed", `REALITY to ${serverName}: ${REAL_CERTIFICATE}`, { cause });
  }

  /** The browser's own protocols, whatever lies above: the server chooses none. */
  #hello() {
    const hello = buildHello(this.#env.template, { serverName: sniOf(this.#options), protocols: null });
    try {
      return sealHello(hello, this.#reality);
    } catch (cause) {
      throw new DialError("failed", `REALITY to ${this.#options.serverName}: public-key cannot be used`, {
        cause,
      });
    }
  }

  /** False: it is a real site, which must see a browser. Throws `TlsFault` where it is neither. */
  #judge(shown: ShownChain, key: KeyObject, authKey: Buffer): boolean {
    const proof = checkProof(shown, key, { authKey, mldsa65: this.#reality.mldsa65 });
    if (proof === "authentic") return true;
    if (proof === "no signature")
      throw new TlsFault("bad_certificate", NO_SIGNATURE, { cause: new AuthError(NO_SIGNATURE) });
    const { serverName } = this.#options;
    const asBrowser = { serverName, nameCertVerify: null, skipCertVerify: false, fingerprint: null };
    try {
      if (this.#env.verify !== null) judgeChain(shown, asBrowser, this.#env.verify);
      return false;
    } catch (error) {
      if (!(error instanceof TlsFault)) throw error;
      const why = `the server showed neither its own certificate nor one that is good for ${serverName} (${error.message}): public-key, short-id or servername is not what it expects, or somebody is in between`;
      throw new TlsFault(error.alert, why, { cause: new AuthError(why) });
    }
  }
}
