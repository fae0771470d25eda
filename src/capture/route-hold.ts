/**
 * Keeps in what ip rules capture (auto-route) while no TUN takes it. The rules stay where they are, and the table that they
 * lead to has a second, worse way, into a device without a reader: captured packets end there, and no others do.
 */
import { isDeepStrictEqual } from "node:util";
import type { CapturePlan } from "#core/capture.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import {
  addAddress,
  addLastRoute,
  deleteAddress,
  deleteRules,
  eachRoute,
  findLink,
  listAddresses,
  openNetlink,
  OUR_PROTOCOL,
  setLink,
  SystemError,
  usesDeadLink,
  type NetlinkSocket,
} from "#platform/netlink.ts";
import { openIdleTun, type IdleTun } from "#platform/tun.ts";
import { RULE_SPAN } from "./policy-rules.ts";
import { clearRoutes, clearRouting, type HeldLink, type RoutingContext } from "./routing.ts";
import { exchangeRules, FAMILIES, hasRoom, refusesFakes, shownRules, tolerating } from "./rule-block.ts";
import { clearStale } from "./stale.ts";
import { tableRoutes } from "./table-routes.ts";

const KEY = "auto-route";
export const GUARD_DEVICE = "svc-guard";
/** Whatever a client sends is lost here, not answered with "too long". */
const MTU_BYTES = 65_535;

interface Held {
  readonly plan: CapturePlan;
  readonly device: IdleTun;
  /** Of the device when it was set up. */
  readonly index: number;
}

export class RouteHold {
  #held: Held | null = null;
  /** Is nothing there of a program before either? */
  #clean = false;

  /** Null: nothing is held. The index follows the device when it is made anew. */
  get link(): HeldLink | null {
    return this.#held === null ? null : { index: () => this.#held?.index ?? 0 };
  }

  /** From now on what `plan` captures goes nowhere but to the TUN. Throws `ConfigError` or `SystemError`. */
  hold(plan: CapturePlan): void {
    using socket = openNetlink(KEY);
    const { options } = plan;
    if (!hasRoom(options))
      throw new ConfigError("iproute2-rule-index: too near to the rule of the main table");
    const before = this.#held;
    const device = before?.device ?? openDevice();
    try {
      this.#holdBy(socket, device, plan);
    } catch (error) {
      if (before === null) {
        clearRouting(socket, plan.options);
        device[Symbol.dispose]();
      }
      throw error;
    }
  }

  #holdBy(socket: NetlinkSocket, device: IdleTun, plan: CapturePlan): void {
    const { options } = plan;
    const before = this.#held;
    const closed = options.onExit === "closed";
    // Its carrier goes with the program.
    if (!usesDeadLink(device.name) && closed)
      throw new ConfigError("needs ignore_routes_with_linkdown=0 in net.ipv4.conf.all and net.ipv6.conf.all");
    device.persist(closed);
    const index = this.#setUp(socket, device);
    if (isDeepStrictEqual(before?.plan, plan) && before?.index === index) return;
    const addresses = [plan.inet4, plan.inet6].flatMap((own) => (own === null ? [] : [own.address.ip]));
    // Programs that begin to talk meanwhile have the TUN's address from the start, by which they are captured later, too.
    for (const ip of addresses) addAddress(socket, index, bytesOfIp(ip), ip.includes(":") ? 128 : 32);
    const routes = new Set<string>();
    for (const family of FAMILIES)
      for (const destination of tableRoutes(plan, family)) {
        addLastRoute(socket, family, options.tableIndex, destination, index);
        routes.add(routeName(family, destination));
      }
    exchangeRules(socket, plan, before?.plan.options.ruleIndex ?? null);
    this.#held = { plan, device, index };
    this.#clean = false;
    if (before === null) dropStrangeFakes(socket, options);
    const old = before?.plan.options.tableIndex ?? options.tableIndex;
    clearRoutes(socket, old, ({ family, destination, link }) => {
      const wanted = old === options.tableIndex && routes.has(routeName(family, destination));
      return link === index && !wanted;
    });
    this.#dropAddresses(socket, index, addresses);
  }

  /** What another process holds by `plan`, and has given the device of; nothing is changed. Throws `ConfigError` or `SystemError`. */
  adopt(plan: CapturePlan): void {
    using socket = openNetlink(KEY);
    const device = openDevice(); // is found by its name
    const held = { plan, device, index: device.index };
    if (!this.#isWhole(socket, held)) {
      device[Symbol.dispose]();
      throw new ConfigError(`${KEY}: routes of the process before to ${GUARD_DEVICE} are not there`);
    }
    this.#held = held;
    this.#clean = false;
  }

  /** The device's; null: nothing is held. */
  get fd(): number | null {
    return this.#held?.device.fd ?? null;
  }

  /** Restores rules, routes and device that another program deleted. Throws as `hold`. */
  keep(): void {
    const held = this.#held;
    if (held === null) return;
    using socket = openNetlink(KEY);
    if (findLink(socket, GUARD_DEVICE)?.index === held.index && this.#isWhole(socket, held)) return;
    if (held.device.index !== held.index) {
      held.device[Symbol.dispose]();
      this.#held = { ...held, device: openDevice(), index: 0 };
    } else this.#held = { ...held, index: 0 };
    this.hold(held.plan);
  }

  /** The program that is started in this one's place goes on holding. */
  passOn(): void {
    this.#held?.device.passOn();
  }

  /** What was captured takes its ordinary ways, but for fake addresses: as after a kill. Throws `SystemError`. */
  release(): void {
    const held = this.#held;
    this.#held = null;
    held?.device.persist(false);
    held?.device[Symbol.dispose]();
  }

  /** The same without exceptions. Never throws. */
  remove(log: Log): void {
    const held = this.#held;
    this.#held = null;
    const wasClean = this.#clean;
    this.#clean = true;
    if (held === null) return wasClean ? undefined : removeRouteHold(log);
    try {
      using socket = openNetlink(KEY);
      clearRouting(socket, held.plan.options);
      held.device.persist(false);
    } catch (error) {
      log.warning(`${KEY}: ip rules and routes cannot be removed: ${messageOf(error)}`);
    }
    held.device[Symbol.dispose]();
  }

  #setUp(socket: NetlinkSocket, device: IdleTun): number {
    const { index } = device;
    if (this.#held?.index === index) return index;
    try {
      setLink(socket, index, { generateAddresses: false });
    } catch {
      // Without IPv6 there are no addresses to generate.
    }
    setLink(socket, index, { mtuBytes: MTU_BYTES, transmitQueue: 1 }); // one packet waits at most, others are lost at once
    setLink(socket, index, { up: true });
    return index;
  }

  #isWhole(socket: NetlinkSocket, { plan, index }: Held): boolean {
    return FAMILIES.every((family) => {
      const there = new Set<string>();
      tolerating(() =>
        eachRoute(socket, family, plan.options.tableIndex, ({ destination, link }) => {
          if (link === index) there.add(routeName(family, destination));
        }),
      );
      return tableRoutes(plan, family).every((destination) => there.has(routeName(family, destination)));
    });
  }

  #dropAddresses(socket: NetlinkSocket, index: number, wanted: readonly Ip[]): void {
    const kept = new Set(wanted.map((ip) => Buffer.from(bytesOfIp(ip)).toString("hex")));
    for (const { link, address, bits } of listAddresses(socket, null))
      if (link === index && !kept.has(Buffer.from(address).toString("hex")))
        deleteAddress(socket, link, address, bits);
  }
}

function routeName(
  family: 4 | 6,
  { bytes, bits }: { readonly bytes: Uint8Array; readonly bits: number },
): string {
  return `${family} ${bits === 0 ? "" : Buffer.from(bytes).toString("hex")}/${bits}`;
}

function openDevice(): IdleTun {
  try {
    return openIdleTun(KEY, GUARD_DEVICE);
  } catch (error) {
    if (!(error instanceof SystemError)) throw error;
    const taken =
      error.code === "EBUSY" || error.code === "EINVAL" ? "; another program has such a device" : "";
    throw new ConfigError(`the device ${GUARD_DEVICE}: ${error.message}${taken}`, { cause: error });
  }
}

/** Has a program before left something that keeps traffic in? Throws `ConfigError` or `SystemError`. */
export function isRouteHeld(): boolean {
  using socket = openNetlink(KEY);
  return findLink(socket, GUARD_DEVICE) !== null || shownRules(socket).some(refusesFakes);
}

/** What a program before has left at other priorities. */
function dropStrangeFakes(socket: NetlinkSocket, { ruleIndex }: RoutingContext): void {
  for (const rule of shownRules(socket)) {
    const ours = rule.priority >= ruleIndex && rule.priority <= ruleIndex + RULE_SPAN;
    if (refusesFakes(rule) && !ours) deleteRules(socket, rule.family, rule.priority, OUR_PROTOCOL);
  }
}

/** What a program before has left; nothing while it runs. Never throws. */
export function removeRouteHold(log: Log): void {
  try {
    using socket = openNetlink(KEY);
    if (findLink(socket, GUARD_DEVICE) !== null) {
      using device = openIdleTun(KEY, GUARD_DEVICE);
      device.persist(false);
    }
    clearStale(log, { keepsFakes: false });
  } catch (error) {
    log.debug(`${KEY}: the device ${GUARD_DEVICE}: ${messageOf(error)}`); // another program holds it, or it is not ours
  }
}
