import type { BrowserTls } from "#core/tls-recipe.ts";
import { ChainVerifier } from "#platform/linux/x509-verify.ts";
import { OlderVersion } from "#transport/tls13/alerts.ts";
import { judgeChain } from "#transport/tls13/chain-judge.ts";
import { ClientConnection } from "#transport/tls13/client-connection.ts";
import { buildHello, canResume } from "#transport/tls13/fingerprints/build-hello.ts";
import { Fingerprints } from "#transport/tls13/fingerprints/names.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { JudgedChains } from "#transport/tls13/judged-chains.ts";
import { Sessions } from "#transport/tls13/sessions.ts";

/** Of so many nodes sessions and judged chains are kept. */
const MOST_NODES = 64;

/** What a thread knows of the server of a node. */
interface BrowserNode {
  readonly template: HelloTemplate;
  readonly judged: JudgedChains;
  /** Null: the browser resumes none. */
  readonly sessions: Sessions | null;
  /** The server speaks TLS 1.2 alone, by the library of the main thread. */
  isOlder: boolean;
}

/** A handshake that is under way. */
export interface BrowserHandshake {
  readonly connection: ClientConnection;
  /** It has failed of this. */
  onFault(fault: unknown): void;
}

/** TLS with the hello of a browser to the servers of nodes that one thread dials. */
export class BrowserTlsTable {
  /** The one that was dialled last stands last. */
  readonly #nodes = new Map<string, BrowserNode>();
  readonly #fingerprints = new Fingerprints();
  /** Opened with the first node; null where it cannot be had. */
  #verifier: ChainVerifier | null | undefined;

  /** Authorities are kept until as many calls of `release`. False: this thread cannot dial the node. */
  hold(recipe: BrowserTls): boolean {
    const verifier = this.#library();
    if (verifier === null || this.#of(recipe)?.isOlder !== false) return false;
    verifier.hold(recipe.store);
    return true;
  }

  release({ store }: BrowserTls): void {
    this.#library()?.release(store);
  }

  /** Says its hello first. Null: this thread cannot. */
  begin(recipe: BrowserTls): BrowserHandshake | null {
    const verifier = this.#library();
    const node = this.#of(recipe);
    if (verifier === null || node === null) return null;
    const { sessions, template, judged } = node;
    const { sni: serverName, protocols, server, store } = recipe;
    const session = sessions?.take() ?? null;
    const connection = new ClientConnection({
      hello: buildHello(template, { serverName, protocols, session }),
      identity: null,
      ...(sessions && { sessions }),
      judge: (shown) => judgeChain(shown, server, (chain) => verifier.verify(store, chain), judged),
    });
    const onFault = (fault: unknown): void => {
      if (session !== null) sessions?.clear();
      if (fault instanceof OlderVersion) node.isOlder = true;
    };
    return { connection, onFault };
  }

  #library(): ChainVerifier | null {
    if (this.#verifier === undefined) this.#verifier = ChainVerifier.open();
    return this.#verifier;
  }

  #of({ id, browser }: BrowserTls): BrowserNode | null {
    const node = this.#nodes.get(id) ?? this.#newNode(browser);
    if (node === null) return null;
    this.#nodes.delete(id);
    this.#nodes.set(id, node);
    const [oldest] = this.#nodes.keys();
    if (this.#nodes.size > MOST_NODES && oldest !== undefined) this.#nodes.delete(oldest);
    return node;
  }

  #newNode(browser: string): BrowserNode | null {
    const template = this.#fingerprints.template(browser);
    if (template === null) return null;
    const sessions = canResume(template) ? new Sessions() : null;
    return { template, judged: new JudgedChains(), sessions, isOlder: false };
  }
}
