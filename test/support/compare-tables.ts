/** One session, decided by a worker, by the tables as it has them, by the router, and as `explain` shows it. */
import assert from "node:assert/strict";
import { itemAt } from "#lib/at.ts";
import type { Decision } from "#core/router.ts";
import type { Metadata } from "#core/session.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { AcceptMemory, newAcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { REQUEST_TYPES, VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { FIRST_ACCEPTED_SLOT } from "#dataplane/workers/shared/relay-memory.ts";
import { Decider } from "#dataplane/workers/worker/decider.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import { factsOf, type FindProcessMode } from "#router/session-facts.ts";
import type { RouterSnapshot } from "#router/snapshot.ts";
import { decide, MAIN_LIST, NO_TARGET, openTables, type RuleTables } from "#router/tables/decide.ts";
import { decisionData, decisionPorts, PLAIN_WAY } from "./decision-data.ts";
import { tablesCase } from "./random-tables.ts";

export interface Compared {
  /** By the tables. */
  decided: number;
  undecided: number;
  /** Of those that the tables decide: by a worker, whose clients have addresses and no names. */
  byWorkers: number;
}

const signal = new AbortController().signal;
const observer = {
  missed() {},
  disabled() {},
  entered() {},
  left() {},
  looked() {},
  passed() {},
};

/** Throws where they do not agree. */
export async function compareTables(sets: number, sessions: number, firstSeed = 1): Promise<Compared> {
  const found: Compared = { decided: 0, undecided: 0, byWorkers: 0 };
  const memory = new AcceptMemory(newAcceptMemory(FIRST_ACCEPTED_SLOT + 1));
  for (let seed = firstSeed; seed < firstSeed + sets; seed++) await compareSet(seed, sessions, memory, found);
  return found;
}

async function compareSet(
  seed: number,
  sessions: number,
  memory: AcceptMemory,
  found: Compared,
): Promise<void> {
  const { text, router, hasUnknown, session, findProcessMode } = tablesCase(seed);
  const { lists } = router;
  const snapshot = router.snapshot();
  const tables = openTables(structuredClone(snapshot.tables));
  const worker = new OneWorker(memory, router, snapshot, findProcessMode);
  for (let count = 0; count < sessions; count++) {
    const metadata = session();
    const what = () => `${JSON.stringify(metadata)}\n${text}`;
    const root = snapshot.rootOf(metadata.inbound.ruleList);
    const shared = decide(tables, root, factsOf(metadata, metadata, findProcessMode));
    const main = router.decide?.(metadata) ?? null;
    if (worker.compare(metadata, main, tables, what)) found.byWorkers++;
    if (shared === null) {
      found.undecided++;
      if (!hasUnknown) assert.equal(main, null, what());
      continue;
    }
    const list = shared.list === MAIN_LIST ? lists.main : lists.nested[shared.list];
    const rule = shared.target === NO_TARGET ? null : list?.rules[shared.position];
    if (rule?.target.startsWith("PASS") === true) {
      assert.equal(main, null, what()); // which rule is next is for the main thread to find
      continue;
    }
    assert.equal(rule ?? null, main?.rule, what());
    const explained: Decision = await router.trace(metadata, signal, observer);
    assert.equal(explained.rule, main?.rule, what());
    assert.deepEqual(explained.chain, main?.chain, what());
    found.decided++;
  }
}

const NAMES = ["in", "other"];
const SLOT = FIRST_ACCEPTED_SLOT;

/** With a listener for each name and rule list. */
class OneWorker {
  readonly #memory: AcceptMemory;
  readonly #router: RuleRouter;
  readonly #snapshot: RouterSnapshot;
  readonly #decider: Decider;
  readonly #findProcessMode: FindProcessMode;
  readonly #local = new Uint8Array(SOCKADDR_BYTES);

  constructor(
    memory: AcceptMemory,
    router: RuleRouter,
    snapshot: RouterSnapshot,
    findProcessMode: FindProcessMode,
  ) {
    this.#memory = memory;
    this.#router = router;
    this.#snapshot = snapshot;
    this.#findProcessMode = findProcessMode;
    using ports = decisionPorts();
    const word = new VersionWord();
    this.#decider = new Decider(memory, { reportLazily() {} }, word, ports.port2);
    const listeners = [null, ...router.lists.nested.map(({ name }) => name)].flatMap((list) =>
      NAMES.map((name) => ({ name, root: snapshot.rootOf(list), fixed: null, destination: null })),
    );
    const ways = snapshot.chains.map((chain) => (chain === null ? null : PLAIN_WAY));
    const ignoresPrograms = findProcessMode === "off";
    ports.port1.postMessage({
      ...decisionData(1),
      rules: snapshot.tables,
      ways,
      listeners,
      ignoresPrograms,
    });
    this.#decider.takeVersion();
    word.present = 1;
  }

  /** Throws where it decides unlike the main thread, or leaves to it what the tables can tell. False: it does not decide. */
  compare(metadata: Metadata, main: Decision | null, tables: RuleTables, what: () => string): boolean {
    const { inbound, source, destination } = metadata;
    const type = REQUEST_TYPES.find((one) => one === inbound.type);
    if (type === undefined || inbound.user !== null) return false; // no client of a worker
    const { ip, host, port } = destination;
    encodeSockaddr(this.#memory.source(SLOT), { address: bytesOfIp(source.ip), port: source.port });
    encodeSockaddr(this.#local, { address: bytesOfIp(inbound.local.ip), port: inbound.local.port });
    const root = this.#snapshot.rootOf(inbound.ruleList);
    const listener = (root + 1) * NAMES.length + NAMES.indexOf(inbound.name);
    const asked = { slot: SLOT, listener, type, destination, local: this.#local };
    const dial = this.#decider.decide({ ...asked, success: () => new Uint8Array() });
    const told = decide(tables, root, factsOf(metadata, metadata, this.#findProcessMode));
    const chain = told === null ? null : itemAt(this.#snapshot.chains, told.target + 1);
    const isTold = host === null && ip !== null && chain !== null;
    assert.equal(dial !== null, isTold, what());
    if (dial === null || ip === null) return false;
    const address = new Uint8Array(SOCKADDR_BYTES);
    const length = encodeSockaddr(address, { address: bytesOfIp(ip), port });
    assert.deepEqual(dial.address, address.subarray(0, length), what());
    this.#compareDecision(metadata, main, what);
    return true;
  }

  #compareDecision(metadata: Metadata, main: Decision | null, what: () => string): void {
    const [, , target = 0, list = 0, position = 0, end = 0] = this.#memory.decision(SLOT);
    const { ruleList } = metadata.inbound;
    const decided = this.#snapshot.decided({ target, list, position, end }, metadata);
    const { outbound, ...ours } = this.#snapshot.withRecords(decided, ruleList);
    assert.ok(main !== null && outbound === main.outbound, what());
    const { outbound: _, ...theirs } = main;
    // Without a rule what databases say is not kept.
    const { records, ...rest } = theirs;
    assert.deepEqual(ours, theirs.rule === null ? rest : { ...rest, ...(records && { records }) }, what());
    const { rules } = this.#router.lists.main;
    if (ruleList === null) assert.equal(end, (main.entered ?? main.rule)?.index ?? rules.length, what());
  }
}
