import type { ManagedInbound } from "#core/inbound.ts";
import { type ClosableListener, type Inbounds, managedOf } from "./inbounds.ts";

interface Former extends Omit<ClosableListener, "inbound"> {
  readonly inbound: WeakRef<ClosableListener["inbound"]>;
}

/**
 * Closed listeners of runtimes that have ended. A connection may have one session after the other, so it may be there still,
 * without any; further ones begin by the users of its listener. These have to change until the last such connection is gone.
 */
export class FormerInbounds {
  #all: readonly Former[] = [];

  add(listeners: readonly ClosableListener[]): void {
    const more = listeners.map(({ inbound, key, isManaged }) => ({
      key,
      isManaged,
      inbound: new WeakRef(inbound),
    }));
    this.#all = [...this.#all.filter(({ inbound }) => inbound.deref() !== undefined), ...more];
  }

  #present(): readonly ClosableListener[] {
    return this.#all.flatMap(({ inbound: former, ...one }) => {
      const inbound = former.deref();
      return inbound === undefined ? [] : [{ ...one, inbound }];
    });
  }

  /** Those whose users are managed. */
  get managed(): readonly ManagedInbound[] {
    return managedOf(this.#present());
  }

  closeRemovedUsers(next: Inbounds): void {
    for (const one of this.#present()) next.closeRemovedUsersOf(one);
  }
}
