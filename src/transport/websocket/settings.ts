/** From the keys of a node to the settings of WebSocket and HTTPUpgrade. */
import type { UpgradeRecipe } from "#core/wire-recipe.ts";
import { transportDefaults } from "#transport/fields.ts";
import { parseConfiguredPath } from "#transport/http-head.ts";
import { headerOf, hostOf } from "#transport/node-host.ts";
import type { TransportClientOptions } from "#transport/transport-client.ts";
import type { HttpUpgradeOptions, WebSocketClientOptions } from "./client.ts";
import { EARLY_DATA_HEADER } from "./early-data.ts";

export type WebSocketSettings =
  | ({ readonly kind: "websocket" } & WebSocketClientOptions)
  | ({ readonly kind: "http-upgrade" } & HttpUpgradeOptions);

export function webSocketOf(options: TransportClientOptions): WebSocketSettings {
  const ws = options["ws-opts"] ?? transportDefaults.ws();
  const { path, earlyDataBytes } = parseConfiguredPath(ws.path);
  const common = { path, host: headerOf(ws.headers, "host") ?? hostOf(options), headers: ws.headers };
  if (ws["v2ray-http-upgrade"]) {
    const fastOpen = ws["v2ray-http-upgrade-fast-open"] || earlyDataBytes > 0;
    return { kind: "http-upgrade", ...common, fastOpen };
  }
  const size = earlyDataBytes || ws["max-early-data"];
  // `?ed=` means the usual header; with `max-early-data` a header that is not named means the path.
  const header = ws["early-data-header-name"] || (earlyDataBytes > 0 ? EARLY_DATA_HEADER : "");
  return { kind: "websocket", ...common, earlyDataBytes: size, earlyDataHeader: header };
}

/** Null: payload goes with the request. */
export function upgradeOf(options: TransportClientOptions): UpgradeRecipe | null {
  const settings = webSocketOf(options);
  const isFramed = settings.kind === "websocket";
  const goesEarly = isFramed ? settings.earlyDataBytes > 0 : settings.fastOpen;
  const { path, host, headers } = settings;
  return goesEarly ? null : { isFramed, path, host, headers };
}
