/**
 * The table in the kernel: made in one transaction, changed through the session that owns it, made anew where it was lost. One
 * that is made while another process has the name has a second name until the first is free.
 */
import type { CapturePlan, DirectSet, Prefix, SteeringMarks } from "#core/capture.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { familyOf } from "#net/address/ip.ts";
import { NftError, type NftSession } from "#platform/nftables.ts";
import { braced, prefixElements, refill } from "./elements.ts";
import { NEXT_TABLE, setNames, TABLE, type TableName } from "./names.ts";
import { tableText, type SetContents } from "./ruleset.ts";
import { steeringChains } from "./steering.ts";

const KEY = "auto-redirect";
const FAMILIES = [4, 6] as const;
/** The error for a table of ours with another flag, or of another session. */
const NOT_OURS = /Operation not permitted/;
const NO_OWNER = /Operation not supported|unknown flag|unexpected|Invalid argument/;
/** Of the sets of prefixes. */
const KINDS = ["local", "route", "routeExclude"] as const;
type SetKind = (typeof KINDS)[number];

interface WantedSet {
  readonly name: string;
  readonly elements: readonly string[];
  readonly text: string;
}

export class RedirectTable implements AsyncDisposable {
  #session: NftSession;
  #name: TableName = TABLE;
  readonly #openSession: () => Promise<NftSession>;
  readonly #plan: CapturePlan;
  readonly #log: Log;
  #owned = true;
  #closed = false;
  #keeping: Promise<void> | null = null;
  #local: readonly Prefix[];
  #route: readonly Prefix[] | null;
  #routeExclude: readonly Prefix[] | null;
  /** Sets of prefixes by name: what the kernel is known to hold. */
  readonly #held = new Map<string, string>();
  readonly #direct = new Set<Ip>();
  #marks: SteeringMarks | null = null;

  private constructor(
    session: NftSession,
    openSession: () => Promise<NftSession>,
    plan: CapturePlan,
    local: readonly Prefix[],
    log: Log,
  ) {
    this.#session = session;
    this.#openSession = openSession;
    this.#plan = plan;
    this.#log = log;
    this.#local = local;
    this.#route = plan.routeSet;
    this.#routeExclude = plan.routeExcludeSet;
    this.learned = plan.options.kernelDirect ? this.#learned : null;
  }

  /**
   * In force when it settles. `beside`: another process has the table, which stays. Throws `ConfigError` when nftables cannot
   * be used or another program owns the table.
   */
  static async open(
    plan: CapturePlan,
    local: readonly Prefix[],
    log: Log,
    openSession: () => Promise<NftSession>,
    { beside = false }: { readonly beside?: boolean } = {},
  ): Promise<RedirectTable> {
    await using undo = new AsyncDisposableStack();
    const session = undo.use(await openSession());
    const table = new RedirectTable(session, openSession, plan, local, log);
    if (beside && (await table.#has(TABLE))) table.#name = NEXT_TABLE;
    await table.#create();
    undo.move();
    table.#watchLoss(session);
    return table;
  }

  get session(): NftSession {
    return this.#session;
  }

  /** Does the kernel take the table away when this process dies? */
  get owned(): boolean {
    return this.#owned;
  }

  /** Networks around us after a change of addresses. */
  async updateLocal(local: readonly Prefix[]): Promise<void> {
    this.#local = local;
    await this.#refill(["local"]);
  }

  /** What the sets of routes hold; null: not configured. */
  get routes(): Pick<SetContents, "route" | "routeExclude"> {
    return { route: this.#route, routeExclude: this.#routeExclude };
  }

  /** The whole new contents; a set that was not configured is ignored. One transaction. */
  async updateRoutes(route: readonly Prefix[], routeExclude: readonly Prefix[]): Promise<void> {
    if (this.#route !== null) this.#route = route;
    if (this.#routeExclude !== null) this.#routeExclude = routeExclude;
    await this.#refill(["route", "routeExclude"]);
  }

  /** What the kernel holds already is left alone. */
  async #refill(kinds: readonly SetKind[]): Promise<void> {
    const changed = this.#wanted(kinds).filter(({ name, text }) => this.#held.get(name) !== text);
    if (changed.length === 0) return;
    this.#log.debug(() => `auto-redirect: new contents of ${changed.map(({ name }) => name).join(", ")}`);
    for (const { name } of changed) this.#held.delete(name); // whatever becomes of it
    await this.#session.run(changed.map(({ name, elements }) => refill(this.#name, name, elements)).join(""));
    this.#hold(changed);
  }

  #hold(sets: readonly WantedSet[]): void {
    for (const { name, text } of sets) this.#held.set(name, text);
  }

  #wanted(kinds: readonly SetKind[]): readonly WantedSet[] {
    const prefixes = { local: this.#local, route: this.#route, routeExclude: this.#routeExclude };
    return FAMILIES.flatMap((family) =>
      kinds.flatMap((kind) => {
        const elements = prefixElements(prefixes[kind] ?? [], family);
        return prefixes[kind] === null
          ? []
          : [{ name: setNames(family)[kind], elements, text: elements.join() }];
      }),
    );
  }

  /** Learned addresses (kernel-direct); null where the plan has no set for them. */
  readonly learned: DirectSet | null;

  readonly #learned: DirectSet = {
    change: async (remove, add) => {
      const leaving = [...new Set(remove)].filter((ip) => this.#direct.delete(ip));
      const coming = [...new Set(add)].filter((ip) => !this.#direct.has(ip));
      for (const ip of coming) this.#direct.add(ip);
      const text = elementsText("delete", this.#name, leaving) + elementsText("add", this.#name, coming);
      if (text !== "") await this.#session.run(text);
    },
    replace: async (addresses) => {
      const wanted = new Set(addresses);
      this.#direct.clear();
      for (const ip of wanted) this.#direct.add(ip);
      await this.#session.run(
        FAMILIES.map((family) => refill(this.#name, setNames(family).direct, ofFamily(wanted, family))).join(
          "",
        ),
      );
    },
  };

  /** Rules on a classifier's marks, in place of those before. */
  async steer(marks: SteeringMarks | null): Promise<void> {
    this.#marks = marks;
    if (this.learned !== null) await this.#session.run(steeringChains(this.#name, this.#plan, marks));
  }

  /** Makes the table anew where it has gone, by another session where this one cannot. Never throws. */
  keep(): Promise<void> {
    this.#keeping ??= this.#keep().finally(() => (this.#keeping = null));
    return this.#keeping;
  }

  async #keep(): Promise<void> {
    if (this.#closed || (await this.#isThere()) || this.#closed) return;
    this.#log.warning(`auto-redirect: the table ${this.#name} has gone, it is made anew`);
    try {
      await this.#create().catch(() => this.#reopen());
    } catch (error) {
      if (!this.#closed)
        this.#log.error(`auto-redirect: the table ${this.#name} could not be made anew: ${messageOf(error)}`);
    }
  }

  async #isThere(): Promise<boolean> {
    try {
      if (this.#name === NEXT_TABLE && !(await this.#has(TABLE))) await this.#rename();
      return await this.#has(this.#name);
    } catch {
      return false; // a session that cannot even list owns nothing any more
    }
  }

  async #has(name: TableName): Promise<boolean> {
    return (await this.#session.run("list tables inet")).split("\n").includes(`table ${name}`);
  }

  /** In one transaction: the process before has given up the first name. Where that fails the next look tries again. */
  async #rename(): Promise<void> {
    this.#name = TABLE; // of what is run behind this
    try {
      await this.#create(`delete table ${NEXT_TABLE}\n`);
    } catch (error) {
      this.#name = NEXT_TABLE;
      this.#log.warning(`auto-redirect: ${NEXT_TABLE} cannot be renamed to ${TABLE}: ${messageOf(error)}`);
    }
  }

  async #reopen(): Promise<void> {
    const session = await this.#openSession();
    const broken = this.#session;
    this.#session = session;
    this.#watchLoss(session);
    await broken[Symbol.asyncDispose]();
    if (!this.#closed) await this.#create();
  }

  /** Traffic takes its ordinary ways from here on. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#keeping; // or a table would be made after this one is gone
    await this.#session.run(`delete table ${this.#name}`).catch(() => {}); // it has gone already, or goes with its owner
    await this.#session[Symbol.asyncDispose]();
  }

  /** Stale state goes and the new comes in one step, with `before` in the same. */
  async #create(before = ""): Promise<void> {
    const name = this.#name;
    const contents = {
      local: this.#local,
      route: this.#route,
      routeExclude: this.#routeExclude,
      direct: this.#direct,
      marks: this.#marks,
    };
    const sets = this.#wanted(KINDS);
    const text = (owned: boolean) =>
      `${before}add table ${name}\ndelete table ${name}\n${tableText(name, this.#plan, contents, { owned })}`;
    try {
      await this.#session.run(text(this.#owned));
      this.#hold(sets);
    } catch (error) {
      if (!(error instanceof NftError)) throw error;
      if (NOT_OURS.test(error.message))
        throw new ConfigError(
          `${KEY}: another program owns the table ${name} of nftables, or CAP_NET_ADMIN is missing: ${error.message}`,
        );
      if (!this.#owned || !NO_OWNER.test(error.message)) throw error;
      await this.#session.run(text(false));
      this.#hold(sets);
      this.#owned = false;
      this.#log.warning(
        `${KEY}: this kernel or nftables knows no owned tables; after a crash the table ${name} stays until the next start`,
      );
    }
  }

  #watchLoss(session: NftSession): void {
    void session.lost.then(async (error) => {
      if (this.#closed) return;
      this.#log.error(`auto-redirect: ${error.message}, another is opened`);
      await this.#keeping; // it may have looked before the session was lost
      await this.keep();
    });
  }
}

function elementsText(verb: "add" | "delete", table: TableName, addresses: readonly Ip[]): string {
  return FAMILIES.map((family) => {
    const elements = ofFamily(addresses, family);
    return elements.length === 0
      ? ""
      : `${verb} element ${table} ${setNames(family).direct} ${braced(elements)}\n`;
  }).join("");
}

function ofFamily(addresses: Iterable<Ip>, family: 4 | 6): readonly Ip[] {
  return [...addresses].filter((ip) => familyOf(ip) === family);
}
