/** Shares in listening sockets: who holds one, who gets its traffic, and when it closes. */
import type { Endpoint, Network } from "#core/session.ts";
import { ANY_V4, ANY_V6, familyOf } from "#net/address/ip.ts";
import { allowOverlap } from "#platform/portable.ts";
import type { ListenAsk } from "./listen-ask.ts";
import type { OwnListeners } from "./own-listeners.ts";

/** A share in a listening socket. It hands nothing over before `activate`; disposing the last share closes the socket. */
export interface Lease extends AsyncDisposable {
  readonly endpoint: Endpoint;
  /** Takes over the socket's traffic from the former leaseholder. */
  activate(): void;
}

export interface Shared<Handler> {
  readonly endpoint: Endpoint;
  readonly fd: number;
  readonly holders: { readonly on: Handler; active: boolean }[];
  /** Makes the newest active holder the receiver. */
  deliver(): void;
  /** Settles when no connection comes any more to holders that have given it up. */
  handedOver(): Promise<void>;
  /** Takes what has come already, where a close would reset it. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

/** Where sockets of one kind are kept, and noted. */
export interface SocketSlot<Of> {
  readonly network: Network;
  readonly pool: Map<string, Promise<Of>>;
  readonly listening: OwnListeners;
}

export function keyOf({ ip, port, owner }: ListenAsk): string {
  return `${ip}|${port}|${port === 0 ? owner : ""}`;
}

/** `open`: its second argument says that another socket of ours has the port at an address that overlaps. */
export async function lease<Handler, Of extends Shared<Handler>>(
  place: SocketSlot<Of>,
  ask: ListenAsk,
  on: Handler,
  open: (ask: ListenAsk, shared: boolean) => Promise<Of>,
): Promise<Lease> {
  const { network, pool, listening } = place;
  const key = keyOf(ask);
  let opening = pool.get(key);
  const found = opening !== undefined;
  if (opening === undefined) {
    opening = openBeside([...pool.values()], ask, open);
    pool.set(key, opening);
    opening.catch(() => pool.delete(key));
  }
  const shared = await opening;
  if (pool.get(key) !== opening) return lease(place, ask, on, open); // closed just now
  if (!found) listening.add(network, shared.endpoint, ask.servesDns ?? false);
  if (found && shared.fd >= 0) ask.configure?.(shared.fd); // it was opened for another configuration
  const holder = { on, active: false };
  shared.holders.push(holder);
  return {
    endpoint: shared.endpoint,
    activate() {
      holder.active = true;
      shared.deliver();
    },
    async [Symbol.asyncDispose]() {
      const at = shared.holders.indexOf(holder);
      if (at < 0) return;
      shared.holders.splice(at, 1);
      if (shared.holders.length > 0) {
        shared.deliver();
        return shared.handedOver();
      }
      await shared.drain();
      if (shared.holders.length > 0 || pool.get(key) !== opening) return; // leased again meanwhile, or closed
      pool.delete(key);
      listening.remove(network, shared.endpoint);
      await shared.close();
    },
  };
}

/**
 * A reload from 127.0.0.1 to every address (`allow-lan`) holds both sockets for a while, which the kernel refuses
 * unless both agree. They agree for the moment of the bind only, so that no other program can join them.
 */
async function openBeside<Of extends Shared<unknown>>(
  open: readonly Promise<Of>[],
  ask: ListenAsk,
  make: (ask: ListenAsk, shared: boolean) => Promise<Of>,
): Promise<Of> {
  const settled = await Promise.allSettled(open);
  const ours = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const descriptors = ours
    .filter(({ endpoint, fd }) => fd >= 0 && overlaps(endpoint, ask))
    .map(({ fd }) => fd);
  if (descriptors.length === 0 || !allowOverlap(descriptors, true)) return make(ask, false);
  try {
    const made = await make(ask, true);
    if (made.fd >= 0) descriptors.push(made.fd);
    return made;
  } finally {
    allowOverlap(descriptors, false);
  }
}

function overlaps({ ip, port }: Endpoint, ask: ListenAsk): boolean {
  if (port !== ask.port || ip === ask.ip) return false;
  const everywhere = [ip, ask.ip].includes(ANY_V6); // a dual-stack socket has the IPv4 addresses, too
  return everywhere || (familyOf(ip) === familyOf(ask.ip) && [ip, ask.ip].includes(ANY_V4));
}

function newestActive<Handler>(holders: readonly { on: Handler; active: boolean }[]): Handler | null {
  return holders.findLast(({ active }) => active)?.on ?? null;
}

/** `hand`: the handler that gets the socket's traffic from now on; null: none. */
export function deliverer<Handler>(
  holders: readonly { on: Handler; active: boolean }[],
  hand: (next: Handler | null) => void,
): () => void {
  let receiver: Handler | null = null;
  return () => {
    const next = newestActive(holders);
    if (next === receiver) return;
    receiver = next;
    hand(next);
  };
}
