/** Publishes to all workers what they decide by, one version after the other. */
import type { DecisionSource, DecisionVersion } from "#dataplane/decision-source.ts";
import { NO_VERSION, VersionWord, type DecisionData } from "#dataplane/workers/shared/decision-data.ts";
import type { DecidableListener } from "./decidable-listener.ts";
import { dropVersion, type DecidedRows, type PublishedVersion } from "./decided-rows.ts";

/** Changes that come together become one version. Until then the main thread decides. */
const GATHER_MS = 5;
const MOST_VERSIONS = 0x7fff_ffff;

type Tables = DecisionVersion["tables"];

const NOTHING: Tables & Pick<DecisionData, "listeners"> = {
  rules: { main: { name: "", steps: [], leads: new Int32Array(), disabled: null }, nested: [] },
  ways: [],
  listeners: [],
  ignoresPrograms: false,
  ownPorts: new Set(),
  names: null,
  namedAddresses: null,
  clock: new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT),
  captures: false,
  sniffed: null,
};

export interface DecisionsEnv {
  /** Of workers that are alive. */
  readonly rows: () => readonly DecidedRows[];
  /** By number of the listener; null: its connections do not begin in a way by which workers can decide. */
  readonly listeners: () => readonly (DecidableListener | null)[];
}

export class Decisions {
  readonly word = new VersionWord();
  readonly #env: DecisionsEnv;
  #source: DecisionSource | null = null;
  #published: PublishedVersion | null = null;
  #last = NO_VERSION;
  /** The last one, while nothing has changed since. */
  #inForce = NO_VERSION;
  #timer: NodeJS.Timeout | undefined;
  /** As published last; null: they have changed since. */
  #rules: Tables["rules"] | null = null;

  constructor(env: DecisionsEnv) {
    this.#env = env;
  }

  decideBy(source: DecisionSource): void {
    this.#source = source;
    this.invalidate();
  }

  /**
   * From this call on workers decide nothing by what was in force; what is in force now is published soon. `keepsRules`: rules
   * and lists are what they were, and are not handed over again.
   */
  invalidate(keepsRules = false): void {
    if (!keepsRules) this.#rules = null;
    this.#inForce = NO_VERSION;
    this.look();
    this.#timer ??= setTimeout(() => this.#publish(), GATHER_MS).unref();
  }

  /** Something was measured. */
  check(): void {
    if (this.#inForce !== NO_VERSION && this.#published?.by?.isCurrent === false) this.invalidate(true);
  }

  /** The source may hold decisions back now, or no longer. */
  look(): void {
    this.word.present = this.#source?.isHeld() === true ? NO_VERSION : this.#inForce;
  }

  #publish(): void {
    this.#timer = undefined;
    this.#drop();
    const rows = this.#env.rows();
    const by = rows.length === 0 ? null : (this.#source?.take() ?? null);
    if (by === null && this.#last === NO_VERSION) return;
    this.#last = (this.#last % MOST_VERSIONS) + 1;
    const version = this.#newVersion(by);
    this.#published = version;
    for (const one of rows) one.send(version);
    if (by !== null) this.#inForce = this.#last;
    this.look();
  }

  /** An empty one makes workers give up what they had. */
  #newVersion(by: DecisionVersion | null): PublishedVersion {
    if (by === null) return { data: { ...NOTHING, version: this.#last }, by, listeners: [], holders: 1 };
    const decidable = this.#env.listeners();
    const listeners = decidable.map((listener) => {
      const facts = listener === null ? null : by.factsOf(listener.context);
      if (listener === null || facts === null) return null;
      return { ...facts, destination: listener.destination, users: listener.users?.written ?? null };
    });
    const { tables } = by;
    const rules = (this.#rules ??= tables.rules);
    return {
      data: { ...tables, rules, version: this.#last, listeners },
      by,
      listeners: decidable,
      holders: 1,
    };
  }

  #drop(): void {
    if (this.#published !== null) dropVersion(this.#published);
    this.#published = null;
  }

  /** At the end of the program. Then connections that workers have decided can be joined, and all versions dropped. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#source = null;
    this.#inForce = NO_VERSION;
    this.look();
  }

  /** After `stop`. */
  dropAll(): void {
    for (const one of this.#env.rows()) one.dropAll();
    this.#drop();
  }
}
