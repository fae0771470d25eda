import { nodesOfText } from "#app/control/setup/nodes.ts";
import { makeKeys } from "#app/control/setup/keys.ts";
import type { SetupControl } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import { makeSelfSigned } from "#transport/tls/self-signed.ts";

/** Answers of a program with one listener, without sockets. */
export const memorySetup: SetupControl = {
  view: () => ({
    listeners: [
      { name: "edge", type: "vless", hosts: ["0.0.0.0"], ports: [443], isListed: true, isManaged: true },
    ],
    nodes: [{ name: "Oslo", type: "socks5", server: "192.0.2.1:1080", inert: null }],
    groups: [{ name: "Proxy", members: ["Oslo"] }],
    svc: { publicBaseUrl: "https://proxy.example.com", managed: ["edge"] },
    hasAcme: false,
    protocols: [],
  }),
  keys: makeKeys,
  certificate: (names) => makeSelfSigned(names, Date.UTC(2030, 0)),
  portFault: async ({ port }) => (port === 443 ? "the port is in use" : null),
  targets: async (sites) =>
    sites.map((host) => ({
      host,
      port: 443,
      serverName: host,
      faults: [],
      doubts: ["its first page answers 404"],
      roundTripMs: 1.5,
    })),
  nodesOf: (text) => nodesOfText(text, new Set(["Oslo"])),
  async links(listener, host) {
    if (listener !== "edge") throw new ApiError(404, `there is no listener ${listener}`);
    return [`trojan://secret@${host}:443#edge`];
  },
};
