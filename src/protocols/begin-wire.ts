/** What threads can begin of protocols: they load no more of these than that. */
import type { WireStart } from "#core/handover.ts";
import type { Destination } from "#core/session.ts";
import type { WireRecipe } from "#core/wire-recipe.ts";
import { beginShadowsocks } from "./shadowsocks/begin.ts";
import { beginVless } from "./vless/begin.ts";
import { beginVmess } from "./vmess/begin.ts";

type Begin<Settings> = (settings: Settings, destination: Destination, nowMs: () => number) => WireStart;

const BEGINNINGS = { shadowsocks: beginShadowsocks, vless: beginVless, vmess: beginVmess } as const;

type Beginnings = typeof BEGINNINGS;

/** The settings are those of the protocol. */
export function recipe<Name extends keyof Beginnings>(
  protocol: Name,
  settings: Parameters<Beginnings[Name]>[0],
): WireRecipe {
  return { protocol, settings };
}

/** What a client of the node adds to its socket, for one destination. Throws for a name that is too long. */
export function beginWire(
  { protocol, settings }: WireRecipe,
  destination: Destination,
  nowMs: () => number,
): WireStart {
  const begin = BEGINNINGS[protocol as keyof Beginnings] as Begin<object> | undefined;
  if (begin === undefined) throw new RangeError(`no thread can begin ${protocol}`);
  return begin(settings, destination, nowMs);
}
