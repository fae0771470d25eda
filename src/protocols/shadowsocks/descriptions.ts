/** What the keys mean that only this protocol has, or that mean something else here. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const descriptions: Descriptions = {
  "kcp-tun": "A disguise that is not spoken: the listener is left out, and a warning says so.",
  "simple-obfs": "A disguise that is not spoken: the listener is left out, and a warning says so.",
  plugin: ["Program whose disguise the server expects: `obfs`, `v2ray-plugin` or `gost-plugin`.", "obfs"],
  "plugin-opts": ["What the disguise needs to know.", { mode: "tls", host: "www.example.com" }],
  "plugin-opts.mode": ["How it looks: `http` or `tls` (obfs), `websocket` (the others).", "websocket"],
  "plugin-opts.host": ["Name of the site that it looks like.", "www.example.com"],
  "plugin-opts.path": ["Path of the WebSocket.", "/ws"],
  "plugin-opts.mux": "Whether connections share one WebSocket; the server must do the same.",
  "proxies.obfs": "Another program's way to write a disguise: use `plugin`.",
};
