/** Between two captures: nothing passes by, and sockets of ours are not captured. */
import type { CapturePlan } from "#core/capture.ts";
import type { Guard } from "#capture/index.ts";
import type { InheritedSockets, ListeningSocket } from "#net/listen/inherited-sockets.ts";
import type { TunSettings } from "#tun/settings.ts";
import type { Tun } from "#tun/tun.ts";
import type { Demanding, TunEgress } from "./tun-egress.ts";

/** The device that routes of the guard lead to. */
const GUARD_KEY = "guard";

export class TunGuard {
  readonly #guard: Guard;
  readonly #egress: TunEgress;

  constructor(guard: Guard, egress: TunEgress) {
    this.#guard = guard;
    this.#egress = egress;
  }

  /** Traffic is kept in, or is about to be: our own sockets still get out. */
  expect(demanding: Demanding): void {
    this.#egress.between(demanding);
  }

  /** While the capture of one of these has ended and the next has not begun. Throws as `Guard.hold`. */
  async hold(ending: readonly TunSettings[]): Promise<void> {
    const settings = guarded(ending);
    if (settings === null) return;
    this.expect(settings);
    await this.#guard.hold();
  }

  /** Until the capture of a guarded TUN begins. Throws what `plan` does, and as `Guard.hold`. */
  async holdBefore(settings: TunSettings, plan: () => CapturePlan): Promise<void> {
    this.expect(settings);
    await this.#guard.hold(plan());
  }

  /**
   * A TUN of `wanted` that does not run is still tried again, or was asked for: until then `on-exit` decides about its
   * traffic.
   */
  async release(running: readonly Tun[], wanted: readonly TunSettings[]): Promise<void> {
    const runs = running.some(({ capture, settings }) => settings.capture.guarded && capture !== null);
    const closed = !runs && guarded(wanted)?.capture.onExit === "closed";
    if (!closed) this.#egress.between(null);
    if (runs || closed) return;
    await (guarded(wanted) === null ? this.#guard.remove() : this.#guard.release());
  }

  /** The program ends, or (`restarting`) another one that is started in its place finds traffic kept in. */
  async end({ restarting }: { readonly restarting: boolean }): Promise<void> {
    if (restarting) await this.#guard.passOn();
    else if (!this.#guard.isForGood) await this.#guard.remove();
  }

  /** Another process holds, and gives it up to this one: the guard finds its device by the name. */
  takeOver(settings: TunSettings, inherited: InheritedSockets): void {
    this.expect(settings);
    inherited.take(GUARD_KEY);
  }

  /** For another process; empty: nothing is held by routes. */
  handles(): readonly ListeningSocket[] {
    const { fd } = this.#guard;
    return fd === null ? [] : [{ key: GUARD_KEY, fd, endpoint: null }];
  }
}

/** There is one at most. */
function guarded(all: readonly TunSettings[]): TunSettings | null {
  return all.find(({ capture }) => capture.guarded) ?? null;
}
