/** What TUNs demand of sockets of ours, so that these are not captured: while one runs, and while the guard waits for one. */
import { GUARD_DEVICE, watchDefaultInterface } from "#capture/index.ts";
import type { CaptureOptions, DefaultInterface } from "#core/capture.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Egress } from "#net/dial/egress.ts";
import { tunAddress, type TunSettings } from "#tun/settings.ts";

export interface TunEgressEnv {
  readonly egress: Egress;
  readonly log: Log;
  /** The default route leads by another interface. */
  readonly onNetworkChange: () => void;
}

export interface Demanding extends Pick<TunSettings, "detectsInterface"> {
  readonly capture: Pick<CaptureOptions, "autoRedirect" | "outputMark">;
}

export class TunEgress {
  readonly #env: TunEgressEnv;
  /** Between two captures. */
  #between: AsyncDisposable | null = null;

  constructor(env: TunEgressEnv) {
    this.#env = env;
  }

  /** Of a running TUN. Throws `ConfigError` where this system cannot tell the default interface. */
  open({ capture, detectsInterface, addresses }: TunSettings, device: string): AsyncDisposable {
    const next = [4, 6].flatMap((family) => tunAddress(addresses, family as 4 | 6)?.next ?? []);
    return this.#demand({ capture, detectsInterface }, device, next);
  }

  /** While the guard keeps traffic in, without a TUN that demands it; null: no longer. Logs what fails. */
  between(demanding: Demanding | null): void {
    const before = this.#between;
    this.#between = null;
    try {
      if (demanding !== null) this.#between = this.#demand(demanding, GUARD_DEVICE, []);
    } catch (error) {
      this.#env.log.warning(messageOf(error));
    }
    void before?.[Symbol.asyncDispose]();
  }

  #demand(
    { capture, detectsInterface }: Demanding,
    device: string,
    dnsAddresses: Parameters<Egress["demand"]>[0]["dnsAddresses"],
  ): AsyncDisposable {
    const { egress, log, onNetworkChange } = this.#env;
    const undo = new AsyncDisposableStack();
    const onChange = (now: DefaultInterface | null): void => {
      log.info(`auto-detect-interface: ${now?.name ?? "there is no default route"}`);
      egress.interfaceChanged();
      onNetworkChange();
    };
    const watch = detectsInterface ? undo.use(watchDefaultInterface(device, onChange, { log })) : null;
    undo.use(
      egress.demand({
        routingMark: capture.autoRedirect ? capture.outputMark : 0,
        dnsAddresses,
        interfaceName: () => (watch === null ? "" : (watch.current?.name ?? null)),
      }),
    );
    return undo;
  }
}
