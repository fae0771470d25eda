/** One session, decided by a worker, by the tables as it has them, by the router, and as `explain` shows it. */
import assert from "node:assert/strict";
import { itemAt } from "#lib/at.ts";
import { ADDRESS_ORIGINS } from "#core/dial-plan.ts";
import { dialOf, type Decision } from "#core/router.ts";
import type { Ip, Metadata } from "#core/session.ts";
import type { WrittenUsers } from "#core/written-users.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { addressesOf, allows } from "#net/address/families.ts";
import { bytesOfIp, familyOf, isLoopback } from "#net/address/ip.ts";
import { PRIVATE } from "#net/address/special-ranges.ts";
import { AcceptMemory, newAcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import type { Dial } from "#dataplane/workers/shared/request-memory.ts";
import { REQUEST_TYPES, VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { FIRST_ACCEPTED_SLOT } from "#dataplane/workers/shared/relay-memory.ts";
import { Decider } from "#dataplane/workers/worker/decider.ts";
import { NO_USER } from "#dataplane/workers/worker/wish.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import { factsOf, type FindProcessMode } from "#router/session-facts.ts";
import type { RouterSnapshot } from "#router/snapshot.ts";
import { decide, MAIN_LIST, NO_TARGET, openTables, type RuleTables } from "#router/tables/decide.ts";
import { decisionData, decisionPorts, PLAIN_WAY } from "./decision-data.ts";
import type { RandomNames } from "./random-names.ts";
import { tablesCase } from "./random-tables.ts";

export interface Compared {
  /** By the tables. */
  decided: number;
  undecided: number;
  /** By a worker, whose clients ask for an address. */
  byWorkers: number;
  /** The same for a name, from its second connection on. */
  named: number;
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
  const found: Compared = { decided: 0, undecided: 0, byWorkers: 0, named: 0 };
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
  const { text, router, names, hasUnknown, session, findProcessMode } = tablesCase(seed);
  const { lists } = router;
  const snapshot = router.snapshot();
  const tables = openTables(structuredClone(snapshot.tables));
  const worker = new OneWorker(memory, router, snapshot, findProcessMode, names);
  for (let count = 0; count < sessions; count++) {
    const metadata = session();
    const what = () => `${JSON.stringify(metadata)}\n${text}`;
    const root = snapshot.rootOf(metadata.inbound.ruleList);
    if (await worker.compareName(metadata, tables, what)) found.named++;
    // Where the hosts table has several addresses each session has another one.
    if (names.prepare(metadata.destination).dnsMode === "hosts") continue;
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
const USERS: WrittenUsers = { protocol: "trojan", type: "Trojan", keys: ["a", "b"], names: ["alice", "bob"] };
const SLOT = FIRST_ACCEPTED_SLOT;

/** Users from elsewhere reach private addresses only where a rule names these: that is for the main thread to look at. */
const isForAll = ({ inbound, source }: Metadata, ip: Ip): boolean =>
  inbound.user === null || isLoopback(source.ip) || !PRIVATE.holds(ip);

/** With two listeners for each name and rule list: of users, and of clients that are none. */
class OneWorker {
  readonly #memory: AcceptMemory;
  readonly #router: RuleRouter;
  readonly #snapshot: RouterSnapshot;
  readonly #decider: Decider;
  readonly #findProcessMode: FindProcessMode;
  readonly #names: RandomNames;
  readonly #local = new Uint8Array(SOCKADDR_BYTES);

  constructor(
    memory: AcceptMemory,
    router: RuleRouter,
    snapshot: RouterSnapshot,
    findProcessMode: FindProcessMode,
    names: RandomNames,
  ) {
    this.#names = names;
    this.#memory = memory;
    this.#router = router;
    this.#snapshot = snapshot;
    this.#findProcessMode = findProcessMode;
    using ports = decisionPorts();
    const word = new VersionWord();
    this.#decider = new Decider(memory, { reportLazily() {}, mayBeOwn: () => false }, word, ports.port2);
    const listeners = [null, ...router.lists.nested.map(({ name }) => name)].flatMap((list) =>
      NAMES.flatMap((name) =>
        [null, USERS].map((users) => ({
          name,
          root: snapshot.rootOf(list),
          fixed: null,
          destination: null,
          users,
        })),
      ),
    );
    const { families, choice, known, resolver } = names;
    const ofFamilies = { v4: allows(families, 4), v6: allows(families, 6) };
    const ways = snapshot.chains.map((chain) => chain && { ...PLAIN_WAY, ...ofFamilies, names: choice });
    const forRules = resolver.shared ? { ...resolver.shared, family: null, prefersV6: false } : null;
    const ignoresPrograms = findProcessMode === "off";
    ports.port1.postMessage({
      ...decisionData(1),
      rules: snapshot.tables,
      ways,
      listeners,
      ignoresPrograms,
      names: { known, forRules },
    });
    this.#decider.takeVersion();
    word.present = 1;
  }

  /** Throws where it decides unlike the main thread, or leaves to it what the tables can tell. False: it does not decide. */
  compare(metadata: Metadata, main: Decision | null, tables: RuleTables, what: () => string): boolean {
    const { host, ip } = metadata.destination;
    const dial = host === null ? this.#ask(metadata) : null;
    if (dial === undefined || ip === null || host !== null) return false;
    const mayDial = allows(this.#names.families, familyOf(ip)) && isForAll(metadata, ip);
    const isTold = this.#isTold(metadata, tables, () => null) && mayDial;
    assert.equal(dial !== null, isTold, what());
    if (dial === null) return false;
    assert.deepEqual(dial.address, this.#sockaddrOf(metadata, ip), what());
    this.#compareDecision(metadata, main, ip, what);
    return true;
  }

  /** The same for a name: before the main thread has looked it up, where it may not be known, and after. */
  async compareName(metadata: Metadata, tables: RuleTables, what: () => string): Promise<boolean> {
    const { host, ip, port } = metadata.destination;
    const { resolver, direct, families, prepare, isKept } = this.#names;
    const before = host === null ? undefined : this.#ask(metadata);
    if (before === undefined || host === null) return false;
    const early = this.#memory.decisions.row(SLOT).slice();
    const main = await this.#router.route(metadata, signal);
    const dialled = await addressesOf(dialOf(main), direct, families, signal).catch(() => []);
    const [first = null] = dialled;
    const seen = await resolver.lookup(host, { signal }).catch(() => []);
    let wasSeen = false;
    const isTold = this.#isTold(metadata, tables, () => ((wasSeen = true), seen[0]?.ip ?? null));
    const { destination, dnsMode } = prepare(metadata.destination);
    const pinned = dnsMode === "hosts" && destination.host === host ? this.#names.pinned(host) : [];
    const isPinned = pinned.length > 0;
    const isKnown = dnsMode === "hosts" ? isPinned : isKept(host);
    const isSame = !wasSeen || first === seen[0]?.ip;
    const dial = this.#ask(metadata) ?? null;
    const late = this.#memory.decisions.row(SLOT).slice();
    // Of several addresses in the hosts table each connection has another one, and rules may tell of some only.
    const told = new Set(
      pinned.length > 1 ? pinned.map((at) => this.#isTold(metadata, tables, () => null, at)) : [],
    );
    const isPublic = first !== null && isForAll(metadata, first);
    const isExpected = ip === null && isTold && isKnown && isPublic && isSame;
    if (told.size < 2) assert.equal(dial !== null, isExpected, what());
    const asked = [
      [before, early],
      [dial, late],
    ] as const;
    for (const [one, row] of asked) {
      if (one === null) continue;
      assert.ok(first !== null, what());
      assert.ok(one.isFirstOfMany === true || dialled.length === 1, what());
      assert.equal(this.#memory.decisions.nameOf(SLOT), host, what());
      const theirs = pinned.length > 1 ? await this.#routeTo(metadata, one.address) : { main, to: first };
      this.#memory.decisions.row(SLOT).set(row);
      assert.deepEqual(one.address, this.#sockaddrOf(metadata, theirs.to), what());
      this.#compareDecision(
        { ...metadata, destination: { host, ip: null, port } },
        theirs.main,
        theirs.to,
        what,
      );
    }
    return dial !== null;
  }

  /** What the main thread decides once it takes that one of several addresses in the hosts table. */
  async #routeTo(metadata: Metadata, address: Uint8Array): Promise<{ main: Decision; to: Ip }> {
    for (let tries = 0; tries < 1_000; tries++) {
      const main = await this.#router.route(metadata, signal);
      const to = dialOf(main).ip;
      if (to !== null && Buffer.compare(address, this.#sockaddrOf(metadata, to)) === 0) return { main, to };
    }
    throw new Error("the main thread never takes an address that a worker has taken");
  }

  /** Can the tables tell where it leads, to something that a worker may dial? */
  #isTold(metadata: Metadata, tables: RuleTables, ipOf: () => Ip | null, at: Ip | null = null): boolean {
    const root = this.#snapshot.rootOf(metadata.inbound.ruleList);
    const { refusal: _, ...prepared } = this.#names.prepare(metadata.destination);
    const { destination } = prepared;
    const pinned = at === null ? prepared : { ...prepared, destination: { ...destination, ip: at } };
    const facts = factsOf(metadata, pinned, this.#findProcessMode);
    const told = decide(tables, root, facts, ipOf);
    return told !== null && itemAt(this.#snapshot.chains, told.target + 1) !== null;
  }

  #sockaddrOf({ destination: { port } }: Metadata, ip: Ip): Uint8Array {
    const address = new Uint8Array(SOCKADDR_BYTES);
    return address.subarray(0, encodeSockaddr(address, { address: bytesOfIp(ip), port }));
  }

  /** Undefined: no client of a worker. */
  #ask({ inbound, source, destination }: Metadata): Dial | null | undefined {
    const type = REQUEST_TYPES.find((one) => one === inbound.type);
    if (type === undefined) return undefined;
    encodeSockaddr(this.#memory.source(SLOT), { address: bytesOfIp(source.ip), port: source.port });
    encodeSockaddr(this.#local, { address: bytesOfIp(inbound.local.ip), port: inbound.local.port });
    const root = this.#snapshot.rootOf(inbound.ruleList);
    const user = inbound.user === null ? NO_USER : USERS.names.indexOf(inbound.user);
    const isUser = user === NO_USER ? 0 : 1;
    const listener = ((root + 1) * NAMES.length + NAMES.indexOf(inbound.name)) * 2 + isUser;
    const asked = { slot: SLOT, listener, type, user, destination, local: this.#local };
    const dial = this.#decider.decide({ ...asked, success: () => new Uint8Array() });
    return dial && { ...dial, address: dial.address.slice() };
  }

  #compareDecision(metadata: Metadata, main: Decision | null, ip: Ip, what: () => string): void {
    const [, , target = 0, list = 0, position = 0, end = 0, origin = 0] = this.#memory.decisions.row(SLOT);
    const { ruleList } = metadata.inbound;
    const ipFrom = itemAt(ADDRESS_ORIGINS, origin);
    const decided = this.#snapshot.decided({ target, list, position, end }, metadata, ip, {
      ipFrom,
      faked: null,
    });
    const { outbound, ...ours } = this.#snapshot.withRecords(decided, ruleList, ipFrom);
    assert.ok(main !== null && outbound === main.outbound, what());
    const { outbound: _, ...theirs } = main;
    // Without a rule what databases say is not kept.
    const { records, ...rest } = theirs;
    assert.deepEqual(ours, theirs.rule === null ? rest : { ...rest, ...(records && { records }) }, what());
    const { rules } = this.#router.lists.main;
    if (ruleList === null) assert.equal(end, (main.entered ?? main.rule)?.index ?? rules.length, what());
  }
}
