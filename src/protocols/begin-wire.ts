/** What threads can begin of protocols: they load no more of these than that. */
import { layersOf, type Layer, type WireStart } from "#core/wire-state.ts";
import type { Destination } from "#core/session.ts";
import type { UnderlayRecipe, WireRecipe } from "#core/wire-recipe.ts";
import type { WrittenUsers } from "#core/written-users.ts";
import { FIRST_FRAME } from "#transport/websocket/frame-reader.ts";
import { beginAnytls } from "./anytls/begin.ts";
import { type FirstRequestReader, FirstRequests } from "./first-requests.ts";
import { beginMux } from "./mux/begin.ts";
import { beginShadowsocks } from "./shadowsocks/begin.ts";
import { beginTrojan } from "./trojan/begin.ts";
import { trojanRequests } from "./trojan/first-request.ts";
import { beginVless } from "./vless/begin.ts";
import { vlessRequests } from "./vless/first-request.ts";
import { beginVmess } from "./vmess/begin.ts";

/** Of the sessions whose streams threads open. */
export { type PaddingScheme, parseScheme, preamblePadding } from "./anytls/padding.ts";
export * as sessionFrames from "./anytls/wire.ts";

type Begin<Settings> = (settings: Settings, destination: Destination, nowMs: () => number) => WireStart;

const BEGINNINGS = {
  anytls: beginAnytls,
  mux: beginMux,
  none: beginNothing,
  shadowsocks: beginShadowsocks,
  trojan: beginTrojan,
  vless: beginVless,
  vmess: beginVmess,
} as const;

/** The wire is what lies below it. */
function beginNothing(_settings: object): WireStart {
  return { kind: "plain", numbers: [], unread: null, layers: [] };
}

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
  { protocol, settings, under }: WireRecipe,
  destination: Destination,
  nowMs: () => number,
): WireStart {
  const begin = BEGINNINGS[protocol as keyof Beginnings] as Begin<object> | undefined;
  if (begin === undefined) throw new RangeError(`no thread can begin ${protocol}`);
  const start = begin(settings, destination, nowMs);
  return under === undefined ? start : over(under, start);
}

/** What would lie over a socket. */
function over(under: UnderlayRecipe, start: WireStart): WireStart {
  const { tls, upgrade } = under;
  const frames: Layer[] =
    upgrade?.isFramed === true ? [{ kind: "websocket", role: "client", reading: FIRST_FRAME }] : [];
  return {
    kind: tls?.kind ?? "plain",
    numbers: tls === null ? [] : [0, 0],
    unread: null,
    layers: [...frames, ...layersOf(start)],
    under,
  };
}

/** By protocol of a listener. */
const FIRST_REQUESTS: Readonly<Record<string, FirstRequestReader>> = {
  trojan: trojanRequests,
  vless: vlessRequests,
};

/** Throws for users of a protocol whose requests threads do not read. */
export function firstRequestsOf(users: WrittenUsers): FirstRequests {
  const reader = FIRST_REQUESTS[users.protocol];
  if (reader === undefined) throw new RangeError(`no thread reads requests of ${users.protocol}`);
  return new FirstRequests(users, reader);
}
