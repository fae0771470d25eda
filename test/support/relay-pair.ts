/** Plain clients of one relay, whose wire leads to a second one, and from there to the origin. */
import type { Way } from "./connections.ts";
import { openRelayed, type Relayed, type RelayedOptions } from "./relayed.ts";

export interface PairSides extends Required<Pick<RelayedOptions, "backend">> {
  /** Of the near relay: what its socket to the far one becomes. */
  readonly back: NonNullable<RelayedOptions["back"]>;
  /** Of the far relay: what the near one's socket becomes. */
  readonly front: NonNullable<RelayedOptions["front"]>;
}

export interface PairWay extends Way {
  readonly relays: readonly [near: Relayed, far: Relayed];
}

/** `farOptions`: where they are not those of the near relay. */
export type OpenPair = (
  originPort: number,
  options?: RelayedOptions,
  farOptions?: RelayedOptions,
) => Promise<PairWay>;

export function relayPair({ backend, back, front }: PairSides): OpenPair {
  return async (originPort, options = {}, farOptions = options) => {
    await using undo = new AsyncDisposableStack();
    const far = undo.use(await openRelayed(originPort, { backend, ...farOptions, front }));
    const near = undo.use(await openRelayed(far.port, { backend, ...options, back }));
    const opened = undo.move();
    return {
      relays: [near, far],
      dial: () => near.dial(),
      [Symbol.asyncDispose]: () => opened.disposeAsync(),
    };
  };
}
