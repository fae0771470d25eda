/** Keys of the Controller and its dashboard. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const controller: Descriptions = {
  "external-controller": [
    "Address of the Controller, `host:port`; `:9090` is every address. Empty: off.",
    "127.0.0.1:9090",
  ],
  "external-controller-tls": [
    "Address of the Controller over TLS; needs `tls.certificate` and `tls.private-key`.",
    ":9443",
  ],
  "external-controller-unix": [
    "Path of a Unix socket of the Controller, open to its owner alone.",
    "weir.sock",
  ],
  "external-controller-pipe": ["Named pipe of the Controller on Windows.", "\\\\.\\pipe\\weir"],
  "external-controller-routing-mark": ["Firewall mark of the Controller's sockets on Linux.", 6666],
  "external-controller-cors": "Which web pages of other origins may call the Controller.",
  "allow-origins": [
    "Origins whose pages may call the Controller. `*` is any, which then still needs the secret.",
    ["https://dashboard.example"],
  ],
  "allow-private-network":
    "Whether browsers may reach the Controller at a private address from a public page.",
  "external-ui": ["Folder of a dashboard that is served at `/ui/`. Empty: the built-in dashboard.", "ui"],
  "external-ui-name": ["Folder inside `external-ui` that is served.", "xd"],
  "external-ui-url": [
    "Archive (zip or tar.gz) that `external-ui` is downloaded from.",
    "https://example.org/ui.zip",
  ],
  "external-doh-server": [
    "Path at which the Controller answers DNS over HTTPS, without the secret.",
    "/dns-query",
  ],
};
