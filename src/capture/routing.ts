/** ip rules and routes in the kernel: put there, kept there, taken away (rtnetlink). */
import type { CaptureOptions, CapturePlan } from "#core/capture.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import {
  addRoute,
  addRule,
  addUnreachable,
  deleteRoute,
  deleteRules,
  eachRoute,
  listLinks,
  type IpRule,
  type NetlinkSocket,
  type Route,
} from "#platform/netlink.ts";
import type { Ownership } from "./ownership.ts";
import { policyRules, RULE_SPAN } from "./policy-rules.ts";
import { addRules, deleteBlock, FAMILIES, shownRules, tolerating } from "./rule-block.ts";
import { tableRoutes } from "./table-routes.ts";

const EVERYTHING: Route["destination"] = { bytes: new Uint8Array(), bits: 0 };

/** The priorities and the table of a capture's rules and routes. */
export type RoutingContext = Pick<CaptureOptions, "ruleIndex" | "fallbackRuleIndex" | "tableIndex">;

/**
 * Deletes all rules and routes with these priorities and in this table, also those that a crash left. A family that the
 * kernel lacks has none.
 */
export function clearRouting(socket: NetlinkSocket, position: RoutingContext): void {
  deleteBlock(socket, position.ruleIndex);
  for (const family of FAMILIES) tolerating(() => deleteRules(socket, family, position.fallbackRuleIndex));
  clearRoutes(socket, position.tableIndex, () => true);
}

/** Those of the table that `which` tells. */
export function clearRoutes(socket: NetlinkSocket, table: number, which: (route: Route) => boolean): void {
  const routes: Route[] = [];
  for (const family of FAMILIES)
    tolerating(() => eachRoute(socket, family, table, (route) => void (which(route) && routes.push(route))));
  for (const { family, destination, link } of routes)
    tolerating(() => deleteRoute(socket, family, table, destination, link));
}

interface RulePosition {
  readonly family: 4 | 6;
  readonly priority: number;
}

/** The device that takes what no TUN does; its routes are the guard's. The index is another one once it was made anew. */
export interface HeldLink {
  index(): number;
}

/** What the kernel has, by names under which two looks can be compared. */
interface Shown {
  /** All rules of a family and priority, in their order. */
  readonly rules: ReadonlyMap<string, string>;
  readonly routes: ReadonlyMap<string, Route>;
}

interface RoutingEnv {
  readonly held: HeldLink | null;
  readonly log: Log;
  readonly ownership: Ownership;
}

export class Routing implements Disposable {
  readonly #socket: NetlinkSocket;
  readonly #plan: CapturePlan;
  readonly #log: Log;
  readonly #rules: readonly IpRule[];
  readonly #held: HeldLink | null;
  readonly #ownership: Ownership;
  /** How it looks when all is well. */
  readonly #right: Shown;

  /**
   * Puts routes and then rules in force; where the guard holds, the rules are there already and stay. Throws `SystemError`
   * with neither left behind. Those of another process have to be there: throws `ConfigError`.
   */
  constructor(socket: NetlinkSocket, plan: CapturePlan, { held, log, ownership }: RoutingEnv) {
    this.#socket = socket;
    this.#plan = plan;
    this.#held = held;
    this.#log = log;
    this.#ownership = ownership;
    this.#rules = policyRules(plan);
    try {
      if (ownership.isOurs) this.#put();
      this.#right = this.#look();
      if (!ownership.isOurs) this.#demandWhole();
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  #put(): void {
    const held = this.#held;
    const { options } = this.#plan;
    if (held === null) clearRouting(this.#socket, options);
    else clearRoutes(this.#socket, options.tableIndex, ({ link }) => link !== held.index());
    this.#addRoutes(new Map());
    if (held === null) addRules(this.#socket, this.#plan);
  }

  #demandWhole(): void {
    const { rules, routes } = this.#right;
    const { device, inet4, inet6 } = this.#plan;
    const due = this.#rules.filter(({ family }) => (family === 4 ? inet4 : inet6) !== null); // others the kernel may lack
    const isThere = FAMILIES.every((family) =>
      tableRoutes(this.#plan, family).every((destination) =>
        routes.has(routeName({ family, destination, link: device.index, unicast: true })),
      ),
    );
    if (!isThere || !due.every((rule) => rules.has(positionName(rule))))
      throw new ConfigError("auto-route: ip rules or routes of the process before are not there");
  }

  /**
   * Restores what another program deleted (a firewall or network manager that starts again), and only that: correct
   * entries are never removed, not even for a moment in which traffic would take another way. Never throws.
   */
  keep(): void {
    if (!this.#ownership.isOurs) return;
    try {
      const seen = this.#look();
      const positions = this.#positions().filter(
        (position) =>
          seen.rules.get(positionName(position)) !== this.#right.rules.get(positionName(position)),
      );
      const strange = [...seen.routes].filter(([name]) => !this.#right.routes.has(name));
      const whole = [...this.#right.routes.keys()].every((name) => seen.routes.has(name));
      if ((positions.length === 0 && strange.length === 0 && whole) || this.#hasLostDevice()) return;
      this.#log.warning("auto-route: ip rules or routes were changed from outside, they are written anew");
      for (const [, route] of strange) this.#delete(route);
      this.#addRoutes(strange.length === 0 ? seen.routes : this.#look().routes);
      for (const position of positions) this.#renew(position);
    } catch (error) {
      this.#log.error(`auto-route: ip rules and routes could not be written anew: ${messageOf(error)}`);
    }
  }

  [Symbol.dispose](): void {
    const held = this.#held;
    if (!this.#ownership.isOurs) return;
    if (held === null) clearRouting(this.#socket, this.#plan.options);
    else clearRoutes(this.#socket, this.#plan.options.tableIndex, ({ link }) => link !== held.index());
  }

  /** The owner of the device notices, too, and makes everything anew. */
  #hasLostDevice(): boolean {
    return !listLinks(this.#socket).some(({ index }) => index === this.#plan.device.index);
  }

  #positions(): readonly RulePosition[] {
    const { ruleIndex, fallbackRuleIndex } = this.#plan.options;
    const span = Array.from({ length: RULE_SPAN + 1 }, (_, step) => ruleIndex + step);
    return FAMILIES.flatMap((family) =>
      [...span, fallbackRuleIndex].map((priority) => ({ family, priority })),
    );
  }

  /** All rules of one priority: several have an order. */
  #renew({ family, priority }: RulePosition): void {
    tolerating(() => deleteRules(this.#socket, family, priority));
    for (const rule of this.#rules)
      if (rule.family === family && rule.priority === priority) addRule(this.#socket, rule);
  }

  #delete({ family, destination, link }: Route): void {
    tolerating(() => deleteRoute(this.#socket, family, this.#plan.options.tableIndex, destination, link));
  }

  /** But those that are there. */
  #addRoutes(there: Shown["routes"]): void {
    const { options, device } = this.#plan;
    const table = options.tableIndex;
    for (const family of FAMILIES) {
      const prefixes = tableRoutes(this.#plan, family);
      for (const destination of prefixes)
        if (!there.has(routeName({ family, destination, link: device.index, unicast: true })))
          addRoute(this.#socket, family, table, destination, device.index);
      // If another program deletes the device, packets marked for it must not leave past it until we have noticed.
      // Marks end with nftables' table, so after a crash this refuses nothing.
      const refused = { family, destination: EVERYTHING, link: 0, unicast: false };
      if (options.autoRedirect && prefixes.length > 0 && !there.has(routeName(refused)))
        addUnreachable(this.#socket, family, table);
    }
  }

  #look(): Shown {
    const rules = new Map<string, string>();
    const routes = new Map<string, Route>();
    for (const rule of shownRules(this.#socket))
      rules.set(positionName(rule), `${rules.get(positionName(rule)) ?? ""}${JSON.stringify(rule)}`);
    for (const family of FAMILIES)
      tolerating(() =>
        eachRoute(this.#socket, family, this.#plan.options.tableIndex, (route) => {
          if (route.link !== this.#held?.index()) routes.set(routeName(route), route);
        }),
      );
    return { rules, routes };
  }
}

function positionName({ family, priority }: RulePosition): string {
  return `${family} ${priority}`;
}

/** A refusal is one, whatever device a kernel shows with it. */
function routeName({ family, destination, link, unicast }: Omit<Route, "table" | "metric">): string {
  const { bytes, bits } = destination;
  const network = bits === 0 ? "everything" : `${Buffer.from(bytes).toString("hex")}/${bits}`; // no bytes, or zeros
  return `${family} ${network} ${unicast ? link : "refused"}`;
}
