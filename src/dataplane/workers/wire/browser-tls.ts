import { performance } from "node:perf_hooks";
import type { BrowserTls, RealityKeys } from "#core/tls-recipe.ts";
import { ChainVerifier } from "#platform/linux/x509-verify.ts";
import { RealityAttempt } from "#transport/reality/attempt.ts";
import { KnownLeaf } from "#transport/reality/certificate.ts";
import { OlderVersion } from "#transport/tls13/alerts.ts";
import { judgeChain, type Verify } from "#transport/tls13/chain-judge.ts";
import { ClientConnection, type ClientConnectionOptions } from "#transport/tls13/client-connection.ts";
import { buildHello, canResume } from "#transport/tls13/fingerprints/build-hello.ts";
import { Fingerprints } from "#transport/tls13/fingerprints/names.ts";
import type { HelloTemplate } from "#transport/tls13/fingerprints/template.ts";
import { JudgedChains } from "#transport/tls13/judged-chains.ts";
import { Sessions } from "#transport/tls13/sessions.ts";

/** Of so many nodes sessions and judged chains are kept. */
const MOST_NODES = 64;
/** A server of REALITY that was none, or one that seems to speak TLS 1.2 alone, is left to the main thread for so long, in ms. */
const LEFT_MS = 300_000;

/** What a thread knows of the server of a node. */
interface BrowserNode {
  readonly template: HelloTemplate;
  readonly judged: JudgedChains;
  /** Of a server of REALITY. */
  readonly leaf: KnownLeaf;
  /** Null: the browser resumes none. */
  readonly sessions: Sessions | null;
  /** Until then the server is the main thread's, on the clock of `performance.now`. */
  leftUntilMs: number;
}

/** A handshake that is under way. */
export interface BrowserHandshake {
  readonly connection: ClientConnection;
  /** Of one that is done: false where the server is the real site in front of which that of REALITY should be. */
  isRight(): boolean;
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
    const node = this.#of(recipe);
    if (verifier === null || node === null || node.leftUntilMs > performance.now()) return false;
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
    const { reality, store } = recipe;
    const verify: Verify = (chain) => verifier.verify(store, chain);
    return reality === null ? byChain(recipe, node, verify) : byKeys(recipe, reality, node, verify);
  }

  #library(): ChainVerifier | null {
    if (this.#verifier === undefined) this.#verifier = ChainVerifier.open();
    return this.#verifier;
  }

  #of(recipe: BrowserTls): BrowserNode | null {
    const { id } = recipe;
    const node = this.#nodes.get(id) ?? this.#newNode(recipe);
    if (node === null) return null;
    this.#nodes.delete(id);
    this.#nodes.set(id, node);
    const [oldest] = this.#nodes.keys();
    if (this.#nodes.size > MOST_NODES && oldest !== undefined) this.#nodes.delete(oldest);
    return node;
  }

  #newNode({ browser, reality }: BrowserTls): BrowserNode | null {
    const template = this.#fingerprints.template(browser);
    if (template === null) return null;
    // Each handshake of REALITY proves the server anew.
    const sessions = reality === null && canResume(template) ? new Sessions() : null;
    const [judged, leaf] = [new JudgedChains(), new KnownLeaf()];
    return { template, judged, leaf, sessions, leftUntilMs: 0 };
  }
}

function byChain(
  { sni: serverName, protocols, server }: BrowserTls,
  node: BrowserNode,
  verify: Verify,
): BrowserHandshake {
  const { sessions, template, judged } = node;
  const session = sessions?.take() ?? null;
  const settings: ClientConnectionOptions = {
    hello: buildHello(template, { serverName, protocols, session }),
    identity: null,
    ...(sessions && { sessions }),
    judge: (shown) => judgeChain(shown, server, verify, judged),
  };
  const onFault = (fault: unknown): void => {
    if (session !== null) sessions?.clear();
    if (fault instanceof OlderVersion) node.leftUntilMs = performance.now() + LEFT_MS;
  };
  return { connection: new ClientConnection(settings), isRight: () => true, onFault };
}

function byKeys(
  { sni, server: { serverName } }: BrowserTls,
  keys: RealityKeys,
  node: BrowserNode,
  verify: Verify,
): BrowserHandshake {
  const attempt = new RealityAttempt(node.template, { ...keys, serverName, sni }, verify, node.leaf);
  const { hello, judge } = attempt;
  const onFault = (): void => {
    const isOther = attempt.server === "site" || attempt.server === "refused";
    if (isOther) node.leftUntilMs = performance.now() + LEFT_MS;
  };
  const isRight = (): boolean => attempt.server === "authentic";
  return { connection: new ClientConnection({ hello, identity: null, judge }), isRight, onFault };
}
