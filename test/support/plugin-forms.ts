import { shadowsocks, ss } from "#protocols/shadowsocks/index.ts";
import type { Form, Options } from "./node-chain.ts";
import { PLUGIN_PATH } from "./plugin-server.ts";
import { clientTls } from "./tls-sides.ts";

/** Shadowsocks whose node speaks by v2ray-plugin without its multiplexing; `options` are the plugin's. */
export function behindPlugin(
  cipher: string,
  plugin: NonNullable<Form["plugin"]>,
  options: Options = {},
): Form {
  const keyBytes = cipher.includes("128") ? 16 : 32;
  const password = cipher.startsWith("2022") ? Buffer.alloc(keyBytes, 5).toString("base64") : "sesame";
  const tls = plugin === "WebSocket and TLS" ? clientTls : {};
  const own = { mode: "websocket", mux: false, host: "server.test", path: PLUGIN_PATH, ...tls, ...options };
  return {
    protocol: { ...ss, ...shadowsocks }, // a node and a listener have names of their own
    server: { cipher, password },
    client: { cipher, password, plugin: "v2ray-plugin", "plugin-opts": own },
    plugin,
  };
}
