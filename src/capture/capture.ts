/** The parts of a capture in the order of their start; their end is the reverse, nftables first. */
import type { Capture, CapturePlan, DirectSet, Prefix, SteeringMarks } from "#core/capture.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import {
  forgetMarkedFlows,
  loosenReversePath,
  openNetlink,
  watchNetwork,
  watchNftables,
  type NetlinkSocket,
} from "#platform/netlink.ts";
import type { Nftables, NftSession } from "#platform/nftables.ts";
import { FirewallOpenings } from "./firewall.ts";
import type { Guard } from "./guard.ts";
import type { Ownership } from "./ownership.ts";
import { localNetworks } from "./local-networks.ts";
import { quoted } from "./nft/exclusions.ts";
import { RedirectTable } from "./nft/table.ts";
import { Routing } from "./routing.ts";

export interface CaptureEnv {
  readonly nftables: Pick<Nftables, "open">;
  readonly guard: Guard;
  readonly ownership: Ownership;
  readonly log: Log;
}

const KEY = "auto-route";
const NFT_KEY = "auto-redirect";
const LOOK_MS = 3_000;

/**
 * Brings traffic to the TUN of the plan. The device is up and the listeners listen. Cleans up what a crash left behind.
 * The guard keeps in what is captured until the capture does, and after it. Throws `ConfigError` or `SystemError`
 * with nothing left in force but the guard. Where it is another process's still, nothing is changed, and it is an error where
 * something lacks.
 */
export async function openCapture(plan: CapturePlan, env: CaptureEnv): Promise<Capture> {
  const { log } = env;
  const { options } = plan;
  if (options.autoRedirect && !options.autoRoute) throw new ConfigError("auto-redirect requires auto-route");
  await using undo = new AsyncDisposableStack();
  if (!options.autoRoute) return new RunningCapture(undo.move(), null, env.guard);
  const socket = undo.use(openNetlink(KEY));
  const guard = options.guarded ? env.guard : null;
  if (env.ownership.isOurs) {
    loosen(plan.device.name, log);
    await guard?.hold(plan);
  } else guard?.adopt(plan);
  const held = guard?.link ?? null;
  const routing = undo.use(new Routing(socket, plan, { held, log, ownership: env.ownership }));
  const redirect = options.autoRedirect ? await openRedirect(undo, socket, plan, env) : null;
  const parts = ["link", "route", "rule", "address"] as const;
  const onChange = (): void => {
    routing.keep();
    if (redirect === null) return void guard?.keep();
    void refreshLocal(redirect.table, socket, log);
    void guard?.renew();
  };
  undo.use(watchNetwork(KEY, { parts, tables: [options.tableIndex], log }, onChange));
  onChange(); // no event has reported changes from before the table was made
  await guard?.settle();
  return new RunningCapture(undo.move(), redirect, env.guard);
}

/** What nftables does of a capture. */
interface Redirect {
  readonly table: RedirectTable;
  /** Puts back what lacks. Never throws. */
  keep(): Promise<void>;
}

function loosen(device: string, log: Log): void {
  try {
    loosenReversePath(device);
  } catch (error) {
    const name = `net.ipv4.conf.${device}.rp_filter`;
    log.warning(
      `auto-route: ${name} could not be set to loose, a strict one drops answers: ${messageOf(error)}`,
    );
  }
}

async function openRedirect(
  undo: AsyncDisposableStack,
  socket: NetlinkSocket,
  plan: CapturePlan,
  { nftables, guard, ownership, log }: CaptureEnv,
): Promise<Redirect> {
  if (plan.redirectPort === null) throw new ConfigError("auto-redirect needs the port of its listener");
  undo.defer(() => (ownership.isOurs ? forget(plan.options.inputMark, log) : undefined));
  const openSession = (): Promise<NftSession> => nftables.open(NFT_KEY);
  const beside = !ownership.isOurs;
  const table = undo.use(await RedirectTable.open(plan, localNetworks(socket), log, openSession, { beside }));
  const openings = new FirewallOpenings(() => table.session, quoted(plan.device.name), log);
  undo.defer(() => (ownership.isOurs ? openings.remove() : undefined));
  const keep = async (): Promise<void> => {
    await table.keep();
    if (ownership.isOurs) await openings.keep();
    await guard.keep();
  };
  if (ownership.isOurs) await openings.keep();
  undo.use(watchNftables(NFT_KEY, log, () => void keep()));
  // The kernel reports no event for a table that goes with its owner's socket.
  const timer = setInterval(() => void table.keep(), LOOK_MS).unref();
  undo.defer(() => clearInterval(timer));
  return { table, keep };
}

/** Flows that were on their way to the TUN begin anew, on their ordinary way. */
function forget(mark: number, log: Log): void {
  try {
    forgetMarkedFlows(KEY, mark);
  } catch (error) {
    log.warning(`auto-redirect: flows cannot be removed from connection tracking: ${messageOf(error)}`);
  }
}

async function refreshLocal(table: RedirectTable, socket: NetlinkSocket, log: Log): Promise<void> {
  try {
    await table.updateLocal(localNetworks(socket));
  } catch (error) {
    log.warning(`auto-redirect: the local networks cannot be updated: ${messageOf(error)}`);
  }
}

class RunningCapture implements Capture {
  readonly directSet: DirectSet | null;
  readonly #parts: AsyncDisposableStack;
  readonly #redirect: Redirect | null;
  readonly #guard: Guard;

  constructor(parts: AsyncDisposableStack, redirect: Redirect | null, guard: Guard) {
    this.#parts = parts;
    this.#guard = guard;
    this.#redirect = redirect;
    this.directSet = redirect?.table.learned ?? null;
  }

  async updateSets({
    route,
    routeExclude,
  }: {
    readonly route: readonly Prefix[];
    readonly routeExclude: readonly Prefix[];
  }): Promise<void> {
    if (this.#redirect === null) return;
    const { table } = this.#redirect;
    await table.updateRoutes(route, routeExclude);
    await this.#guard.renew(table.routes);
  }

  async steer(marks: SteeringMarks | null): Promise<void> {
    if (this.#redirect === null) return;
    await this.#guard.renew({ marks });
    await this.#redirect.table.steer(marks);
  }

  async confirm(): Promise<void> {
    await this.#guard.confirm();
    await this.#redirect?.keep();
  }

  async leave(): Promise<void> {
    await this.#redirect?.table[Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.disposeAsync();
  }
}
