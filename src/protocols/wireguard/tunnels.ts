import type { OpenWay, Tunnel } from "./tunnel.ts";

interface Shared {
  readonly opened: Promise<Tunnel>;
  users: number;
}

export interface TunnelLease extends AsyncDisposable {
  readonly tunnel: Tunnel;
}

/**
 * The tunnels of all generations. Two with the same keys would take each other's place at the server, so a node that a
 * reload makes anew goes on with the tunnel that is there.
 */
export class Tunnels {
  readonly #shared = new Map<string, Shared>();

  /** `key`: all that the tunnel is made of. `open` makes it where there is none; `way` is its way from here on. */
  async take(key: string, way: OpenWay, open: () => Promise<Tunnel>): Promise<TunnelLease> {
    const known = this.#shared.get(key);
    const shared = known ?? { opened: open(), users: 0 };
    this.#shared.set(key, shared);
    shared.users++;
    const leave = async (): Promise<void> => {
      if (--shared.users > 0) return;
      if (this.#shared.get(key) === shared) this.#shared.delete(key);
      await (await shared.opened)[Symbol.asyncDispose]();
    };
    try {
      const tunnel = await shared.opened;
      if (known !== undefined) tunnel.follow(way);
      return { tunnel, [Symbol.asyncDispose]: leave };
    } catch (error) {
      shared.users--;
      if (this.#shared.get(key) === shared) this.#shared.delete(key); // the next one tries again
      throw error;
    }
  }
}
