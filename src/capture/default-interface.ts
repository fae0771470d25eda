/** Which device leads to the Internet, watched. */
import type { DefaultInterface, DefaultInterfaceWatch } from "#core/capture.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import {
  eachRoute,
  listLinks,
  MAIN_TABLE,
  openNetlink,
  SystemError,
  watchNetwork,
  type NetlinkSocket,
  type Route,
} from "#platform/netlink.ts";

const KEY = "auto-detect-interface";

/**
 * Calls `on` whenever the interface of the default route has changed; null: there is none. `except` is the name of the
 * TUN. Throws `ConfigError` where this system cannot tell.
 */
export function watchDefaultInterface(
  except: string,
  on: (now: DefaultInterface | null) => void,
  { log }: { readonly log: Log },
): DefaultInterfaceWatch {
  using undo = new DisposableStack();
  const socket = undo.use(openNetlink(KEY));
  let current: DefaultInterface | null = null;
  const look = (): void => {
    let now: DefaultInterface | null;
    try {
      now = findDefaultInterface(socket, except);
    } catch (error) {
      return log.warning(`${KEY}: the routes could not be read: ${messageOf(error)}`);
    }
    if (now?.index === current?.index && now?.name === current?.name) return;
    current = now;
    on(now);
  };
  undo.use(watchNetwork(KEY, { parts: ["link", "route"], tables: [], log }, look));
  current = findDefaultInterface(socket, except); // after the subscription: a change in between would be missed
  const owned = undo.move();
  return {
    get current() {
      return current;
    },
    [Symbol.asyncDispose]: async () => owned.dispose(),
  };
}

/** Of IPv4 where it has a default route, else of IPv6; the lowest metric wins, a device that is down never. */
function findDefaultInterface(socket: NetlinkSocket, except: string): DefaultInterface | null {
  const usable = new Map(
    listLinks(socket)
      .filter(({ name, up }) => up && name !== except)
      .map(({ index, name }) => [index, name] as const),
  );
  for (const family of [4, 6] as const) {
    const best = bestDefault(socket, family, usable);
    const name = best === null ? undefined : usable.get(best.link);
    if (best !== null && name !== undefined) return { name, index: best.link };
  }
  return null;
}

function bestDefault(
  socket: NetlinkSocket,
  family: 4 | 6,
  usable: ReadonlyMap<number, string>,
): Route | null {
  let best: Route | null = null;
  try {
    eachRoute(socket, family, MAIN_TABLE, (route) => {
      if (route.destination.bits !== 0 || !route.unicast || !usable.has(route.link)) return;
      if (best === null || route.metric < best.metric) best = route;
    });
  } catch (error) {
    if (!(error instanceof SystemError)) throw error; // the kernel has no such family
  }
  return best;
}
