/**
 * Keeps in what is captured while no capture is in force: when one is changed, when the program restarts, and, with
 * `on-exit: closed`, after its end. With auto-redirect that is a table of nftables without an owner, which stays whatever
 * becomes of the program; with auto-route alone see `RouteHold`.
 */
import type { CapturePlan, Prefix, SteeringMarks } from "#core/capture.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { deleteTable, hasTable, openNetlink } from "#platform/netlink.ts";
import type { Nftables } from "#platform/nftables.ts";
import { localNetworks } from "./local-networks.ts";
import { isRouteHeld, removeRouteHold, RouteHold } from "./route-hold.ts";
import type { Ownership } from "./ownership.ts";
import type { HeldLink } from "./routing.ts";
import { guardText, type Keeps } from "./nft/guard-text.ts";
import { GUARD_TABLE } from "./nft/names.ts";

const KEY = "auto-redirect";
/** With `on-exit: open`: for a change or a restart; a program that does not come back by then leaves traffic open. */
const SECONDS = 60;
const NAME = GUARD_TABLE.replace(/^inet /, "");

/** The guard's inputs beside the plan, as they were last set. */
interface Known {
  readonly plan: CapturePlan;
  readonly route: readonly Prefix[] | null;
  readonly routeExclude: readonly Prefix[] | null;
  readonly marks: SteeringMarks | null;
}

type State = "holding" | "steady";

export class Guard {
  readonly #nftables: Pick<Nftables, "open">;
  readonly #log: Log;
  readonly #ownership: Ownership;
  readonly #routes = new RouteHold();
  #known: Known | null = null;
  #state: State = "steady";
  /** Null: nothing of ours is in force, as far as is known. */
  #text: string | null = null;
  /** Of what runs: one after the other, the last one is in force. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(nftables: Pick<Nftables, "open">, log: Log, ownership: Ownership) {
    this.#nftables = nftables;
    this.#log = log;
    this.#ownership = ownership;
  }

  /** What another process holds by `plan`; with auto-redirect that is made anew by `confirm`. Throws `ConfigError`, `SystemError`. */
  adopt(plan: CapturePlan): void {
    this.#known = { plan, route: plan.routeSet, routeExclude: plan.routeExcludeSet, marks: null };
    if (!plan.options.autoRedirect) this.#routes.adopt(plan);
  }

  /** It is this process's now. Logs what fails. */
  confirm(): Promise<void> {
    return this.#next(async () => {
      if (this.#known?.plan.options.autoRedirect === true) await this.#show();
    }).catch((error: unknown) => this.#log.warning(messageOf(error)));
  }

  /** For another process; null: nothing is held by routes. */
  get fd(): number | null {
    return this.#routes.fd;
  }

  /** Does it stay when the program ends? */
  get isForGood(): boolean {
    return this.#known?.plan.options.onExit === "closed";
  }

  /** Has a program before left something that keeps traffic in? */
  static isThere(): boolean {
    try {
      return hasTable(KEY, NAME) || isRouteHeld();
    } catch {
      return false; // without the right to look there is nothing that this program could have left
    }
  }

  /**
   * From now on nothing leaves that `plan` captures; null: that the last plan did. Throws `ConfigError` where the file says
   * `on-exit: closed` and it cannot be kept; else that is a warning.
   */
  hold(plan: CapturePlan | null = null): Promise<void> {
    return this.#next(async () => {
      if (plan !== null)
        this.#known = { plan, route: plan.routeSet, routeExclude: plan.routeExcludeSet, marks: null };
      this.#state = "holding";
      await this.#show();
    });
  }

  /** Where routes lead that no TUN takes; null: nothing is held by routes. */
  get link(): HeldLink | null {
    return this.#routes.link;
  }

  /** The capture of the last plan is in force. Throws as `hold`. */
  settle(): Promise<void> {
    return this.#next(async () => {
      this.#state = "steady";
      if (this.#text !== null) await this.#show(); // else it could not be held, and will not be now
    });
  }

  /** Restores the table where another program has deleted it. Logs failures. */
  keep(): Promise<void> {
    return this.#next(async () => {
      this.#routes.keep();
      if (this.#text === null || hasTable(KEY, NAME)) return;
      this.#log.warning(`${KEY}: the table ${GUARD_TABLE} has gone, it is made anew`);
      this.#text = null;
      await this.#show();
    }).catch((error: unknown) => this.#log.warning(messageOf(error)));
  }

  /** Other networks around, other route sets or marks. Logs what fails. */
  renew(changed: Partial<Omit<Known, "plan">> = {}): Promise<void> {
    return this.#next(async () => {
      if (this.#known === null) return;
      this.#known = { ...this.#known, ...changed };
      if (this.#keeps() !== null) await this.#show();
    }).catch((error: unknown) => this.#log.warning(messageOf(error)));
  }

  /** There is no capture, and nothing shall wait for one: fake addresses alone are kept in. Throws as `hold`. */
  async release(): Promise<void> {
    await this.settle();
    await this.#next(async () => this.#routes.release());
  }

  /** The program that is started in this one's place finds traffic kept in. */
  passOn(): Promise<void> {
    return this.#next(async () => this.#routes.passOn());
  }

  /** No capture is wanted any more: everything goes its own way. Never throws. */
  remove(): Promise<void> {
    return this.#next(async () => {
      this.#known = null;
      this.#text = null;
      removeTable(this.#log);
      this.#routes.remove(this.#log);
    });
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(() => (this.#ownership.isOurs ? work() : undefined));
    this.#turn = done.catch(() => {});
    return done;
  }

  #keeps(): Keeps {
    if (this.#known?.plan.options.onExit === "closed") return "for good";
    return this.#state === "holding" ? { seconds: SECONDS } : null;
  }

  async #show(): Promise<void> {
    const known = this.#known;
    if (known === null) return;
    if (!known.plan.options.autoRedirect) return this.#showRoutes(known.plan);
    await this.#showTable(known);
    this.#routes.remove(this.#log); // of a plan before
  }

  #showRoutes(plan: CapturePlan): void {
    try {
      this.#routes.hold(plan);
    } catch (error) {
      this.#refused(plan, error);
      this.#routes.remove(this.#log); // then the capture makes its rules itself
    }
    this.#text = null;
    removeTable(this.#log);
  }

  async #showTable(known: Known): Promise<void> {
    const keeps = this.#keeps();
    const { plan, ...sets } = known;
    if (keeps === null && plan.fakeRanges.length === 0) {
      this.#text = null;
      return removeTable(this.#log);
    }
    try {
      using socket = openNetlink(KEY);
      const text = guardText(plan, { ...sets, local: localNetworks(socket) }, keeps);
      // What ends by itself is begun anew.
      if (text === this.#text && (keeps === null || keeps === "for good")) return;
      this.#text = null;
      await using session = await this.#nftables.open(KEY);
      await session.run(text);
      this.#text = text;
    } catch (error) {
      this.#refused(plan, error);
    }
  }

  #refused({ options: { onExit, autoRedirect } }: CapturePlan, error: unknown): void {
    const what = "traffic is not kept in while nothing captures it";
    if (onExit === "closed")
      throw new ConfigError(`on-exit: closed: ${what}: ${messageOf(error)}`, { cause: error });
    this.#log.warning(`${autoRedirect ? KEY : "auto-route"}: ${what}: ${messageOf(error)}`);
  }
}

/** Also what another program of ours has left. Needs no library. Never throws. */
export function removeGuard(log: Log): void {
  removeTable(log);
  removeRouteHold(log);
}

function removeTable(log: Log): void {
  try {
    if (hasTable(KEY, NAME)) deleteTable(KEY, NAME);
  } catch (error) {
    log.debug(`${KEY}: the table ${GUARD_TABLE}: ${messageOf(error)}`); // without the right there is none of ours
  }
}
