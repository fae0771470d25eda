/** ip rules and routes in the kernel: put there, kept there, taken away (rtnetlink). */
import type { CaptureOptions, CapturePlan } from "#core/capture.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import {
  addRoute,
  addRule,
  addUnreachable,
  deleteRoute,
  deleteRules,
  eachRoute,
  listLinks,
  listRules,
  SystemError,
  type IpRule,
  type NetlinkSocket,
  type Route,
} from "#platform/netlink.ts";
import { policyRules, RULE_SPAN } from "./policy-rules.ts";
import { tableRoutes } from "./table-routes.ts";

const FAMILIES = [4, 6] as const;

/** Where a capture's rules and routes stand. */
export type RoutingPlace = Pick<CaptureOptions, "ruleIndex" | "fallbackRuleIndex" | "tableIndex">;

/** Takes away whatever stands in the place, also what a crash left there. A family that the kernel lacks has nothing. */
export function clearRouting(socket: NetlinkSocket, place: RoutingPlace): void {
  for (const family of FAMILIES) {
    for (let step = 0; step <= RULE_SPAN; step++)
      tolerating(() => deleteRules(socket, family, place.ruleIndex + step));
    tolerating(() => deleteRules(socket, family, place.fallbackRuleIndex));
    const routes: Route[] = [];
    tolerating(() => eachRoute(socket, family, place.tableIndex, (route) => routes.push(route)));
    for (const { destination, link } of routes)
      tolerating(() => deleteRoute(socket, family, place.tableIndex, destination, link));
  }
}

const ABSENT: ReadonlySet<string> = new Set(["EAFNOSUPPORT", "EOPNOTSUPP", "ESRCH", "ENOENT"]);

function tolerating(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof SystemError && ABSENT.has(error.code))) throw error;
  }
}

export class Routing implements Disposable {
  readonly #socket: NetlinkSocket;
  readonly #plan: CapturePlan;
  readonly #log: Log;
  readonly #rules: readonly IpRule[];
  /** What the kernel showed when all was well. */
  #shown = "";

  /** Puts routes and then rules in force. Throws `SystemError` with neither left behind. */
  constructor(socket: NetlinkSocket, plan: CapturePlan, log: Log) {
    this.#socket = socket;
    this.#plan = plan;
    this.#log = log;
    this.#rules = policyRules(plan);
    try {
      this.#apply();
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  /** Writes anew what somebody else took away (a firewall or network manager that starts again). Never throws. */
  keep(): void {
    try {
      if (this.#look() === this.#shown || this.#hasLostDevice()) return;
      this.#log.warning("auto-route: ip rules or routes were changed from outside, they are written anew");
      this.#apply();
    } catch (error) {
      this.#log.error(`auto-route: ip rules and routes could not be written anew: ${messageOf(error)}`);
    }
  }

  [Symbol.dispose](): void {
    clearRouting(this.#socket, this.#plan.options);
  }

  /** Whoever holds it will notice, too, and make everything anew. */
  #hasLostDevice(): boolean {
    return !listLinks(this.#socket).some(({ index }) => index === this.#plan.device.index);
  }

  #apply(): void {
    const { options, device } = this.#plan;
    clearRouting(this.#socket, options);
    for (const family of FAMILIES) {
      const prefixes = tableRoutes(this.#plan, family);
      for (const prefix of prefixes) addRoute(this.#socket, family, options.tableIndex, prefix, device.index);
      // Somebody deletes the device: until we have noticed, what is marked for it must not leave past it. Marks end with
      // nftables' table, so after a crash this refuses nothing.
      if (options.autoRedirect && prefixes.length > 0)
        addUnreachable(this.#socket, family, options.tableIndex);
    }
    for (const rule of this.#rules) addRule(this.#socket, rule);
    this.#shown = this.#look();
  }

  #look(): string {
    const { ruleIndex, fallbackRuleIndex, tableIndex } = this.#plan.options;
    const ours = (priority: number): boolean =>
      (priority >= ruleIndex && priority <= ruleIndex + RULE_SPAN) || priority === fallbackRuleIndex;
    const seen: unknown[] = [];
    for (const family of FAMILIES) {
      tolerating(() => seen.push(listRules(this.#socket, family).filter(({ priority }) => ours(priority))));
      let routes = 0;
      tolerating(() => eachRoute(this.#socket, family, tableIndex, () => routes++));
      seen.push(routes);
    }
    return JSON.stringify(seen);
  }
}
