/** What workers may decide by while a runtime is in force. */
import type { DialTemplate, NameChoice } from "#core/dial-plan.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Ip } from "#core/session.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Decision } from "#core/router.ts";
import { joinDecided, settleDecided } from "#dataplane/decided.ts";
import type { DecidedConnection, DecisionSource, DecisionVersion } from "#dataplane/decision-source.ts";
import type { SessionEnv } from "#dataplane/session-env.ts";
import { lastOf } from "#lib/at.ts";
import type { NamedAddressesData } from "#net/address/named-addresses.ts";
import type { ListenerContext } from "#net/listen/accept.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import type { RouterSnapshot } from "#router/snapshot.ts";
import type { FindProcessMode } from "#router/session-facts.ts";
import { copiedConditions, type FoundRule } from "#router/tables/decide.ts";
import type { DecisionTables, ListenerFacts } from "#router/tables/decision-tables.ts";
import type { WorkerConnection } from "#core/accepted.ts";

export interface DecisionSourceEnv {
  readonly router: RuleRouter;
  readonly session: SessionEnv;
  readonly findProcessMode: FindProcessMode;
  readonly outbound: (name: string) => Outbound | null;
  /** As `DecisionTables.captures`, until that is said to have changed. */
  readonly captures: () => boolean;
  /** Each connection has to be looked at by the main thread for a moment, whatever the rules say. */
  readonly isHeld: () => boolean;
  readonly ownPorts: () => ReadonlySet<number>;
  /** That of the router, and what it shares with threads. */
  readonly resolver: Resolver;
  readonly knownNames: SharedArrayBuffer;
  /** As `NetworkClock.memory`. */
  readonly clock: SharedArrayBuffer;
  /** A worker has served a client that asked for it. */
  readonly usesFakeIp: (ip: Ip) => void;
  /** As `Dns.namedAddresses`. */
  readonly namedAddresses: NamedAddressesData | null;
}

/** To copy more of them to every worker would hold up connections for longer than their decisions take. */
const MOST_COPIED = 4_000;

export function openDecisionSource(env: DecisionSourceEnv): DecisionSource {
  return {
    take() {
      if (env.findProcessMode === "always" || env.session.ledger.free !== true) return null;
      const snapshot = env.router.snapshot();
      return copiedConditions(snapshot.tables) > MOST_COPIED ? null : new RuntimeVersion(env, snapshot);
    },
    isHeld: env.isHeld,
  };
}

class RuntimeVersion implements DecisionVersion {
  readonly #env: DecisionSourceEnv;
  readonly #snapshot: RouterSnapshot;
  readonly #targets = new Map<string, number>();

  constructor(env: DecisionSourceEnv, snapshot: RouterSnapshot) {
    this.#env = env;
    this.#snapshot = snapshot;
    env.session.enter(); // the runtime is kept until no worker decides by it
  }

  factsOf({ name, ruleList, target }: ListenerContext): ListenerFacts | null {
    const root = this.#snapshot.rootOf(ruleList);
    if (target === null) return { name, root, fixed: this.#snapshot.fixed };
    const number = this.#numberOf(target);
    return number === null ? null : { name, root, fixed: number };
  }

  /** Null: there is no such outbound, which the main thread says to each client. */
  #numberOf(target: string): number | null {
    const known = this.#targets.get(target);
    if (known !== undefined) return known;
    const outbound = this.#env.outbound(target);
    if (outbound === null) return null;
    const number = this.#snapshot.numberOf(outbound);
    this.#targets.set(target, number);
    return number;
  }

  get tables(): DecisionTables {
    return {
      rules: this.#snapshot.tables,
      ways: this.#snapshot.chains.map((chain) => (chain === null ? null : wayOf(lastOf(chain)))),
      ignoresPrograms: this.#env.findProcessMode === "off",
      ownPorts: this.#env.ownPorts(),
      names: { known: this.#env.knownNames, forRules: forRules(this.#env.resolver) },
      namedAddresses: this.#env.namedAddresses,
      clock: this.#env.clock,
      captures: this.#env.captures(),
      sniffed: this.#env.session.sniffer?.streams ?? null,
    };
  }

  isDirect({ target }: FoundRule): boolean {
    return lastOf(this.#snapshot.chains[target + 1] ?? [])?.type === "Direct";
  }

  get isCurrent(): boolean {
    return this.#snapshot.isCurrent;
  }

  served(connection: DecidedConnection, upload: number, download: number): void {
    const decision = this.#decisionOf(connection);
    settleDecided(connection, decision, { upload, download }, this.#env.session);
  }

  joined(connection: DecidedConnection, worker: WorkerConnection, onEnd: () => void): void {
    const decision = this.#decisionOf(connection);
    const { ruleList } = connection.metadata.inbound;
    joinDecided(
      worker,
      connection,
      this.#snapshot.withRecords(decision, ruleList, connection.ipFrom),
      this.#env.session,
      onEnd,
    );
  }

  #decisionOf({ found, metadata, ip, ipFrom, faked }: DecidedConnection): Decision {
    const decision = this.#snapshot.decided(found, metadata, ip, { ipFrom, faked });
    if (faked !== null && metadata.destination.ip !== null) this.#env.usesFakeIp(metadata.destination.ip);
    for (const group of decision.groups) group.used?.();
    return decision;
  }

  [Symbol.dispose](): void {
    this.#env.session.leave();
  }
}

/** Rules see the first address of either family. */
function forRules({ shared }: Resolver): NameChoice | null {
  return shared === undefined ? null : { ...shared, family: null, prefersV6: false };
}

function wayOf(leaf: Outbound): DialTemplate | null {
  return leaf.networks.has("tcp") ? (leaf.template?.() ?? null) : null;
}
