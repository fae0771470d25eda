/** From the keys of a node to the settings of XHTTP. */
import { type TransportNetwork, transportDefaults } from "#transport/fields.ts";
import { parseConfiguredPath, pathOf } from "#transport/http-head.ts";
import { headerOf, hostOf } from "#transport/node-host.ts";
import type { TransportClientOptions } from "#transport/transport-client.ts";
import type { XhttpClientOptions } from "./requests.ts";

/** XHTTP speaks HTTP/1.1 where the node's `alpn` names nothing else, as its peers have it; else HTTP/2. */
export function isXhttp1({ alpn }: TransportClientOptions, network: TransportNetwork): boolean {
  return network === "xhttp" && alpn?.length === 1 && alpn[0] === "http/1.1";
}

export function xhttpOf(options: TransportClientOptions, scheme: "http" | "https"): XhttpClientOptions {
  const xhttp = options["xhttp-opts"] ?? transportDefaults.xhttp();
  const { path } = parseConfiguredPath(xhttp.path);
  const query = path.slice(pathOf(path).length + 1);
  const headers = Object.entries(xhttp.headers).filter(([name]) => name.toLowerCase() !== "host");
  return {
    scheme,
    authority: xhttp.host || (headerOf(xhttp.headers, "host") ?? hostOf(options)),
    path: pathOf(path),
    query,
    mode: xhttp.mode === "auto" ? autoMode(options) : xhttp.mode,
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    noGrpcHeader: xhttp["no-grpc-header"],
    maxPostBytes: xhttp["sc-max-each-post-bytes"],
    minPostsIntervalMs: xhttp["sc-min-posts-interval-ms"],
    mostPosts: isXhttp1(options, "xhttp") ? 2 : 8, // over HTTP/1.1 each takes a connection
  };
}

/** In front of a server with REALITY there is nothing that would hold back what is streamed; its peers have it so, too. */
function autoMode({ "reality-opts": reality }: TransportClientOptions): "packet-up" | "stream-one" {
  return reality === undefined ? "packet-up" : "stream-one";
}
