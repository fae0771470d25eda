/** The transport keys of nodes and listeners, under their names in files. */
import * as z from "zod";
import {
  choice,
  Fault,
  flag,
  int,
  list,
  mapOf,
  name,
  scalar,
  show,
  text,
  unsetAs,
  Unsupported,
} from "#core/fields.ts";
import { parseRanges } from "#core/ranges.ts";
import { unsupported } from "#core/node-fields.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { headerMap } from "./tls/fields.ts";
import { itemAt } from "#lib/at.ts";

const wsOptions = z.object({
  path: text().default("/"),
  headers: headerMap().default({}),
  "max-early-data": int(0, 65_535).default(0),
  "early-data-header-name": text().optional(),
  "v2ray-http-upgrade": flag().default(false),
  "v2ray-http-upgrade-fast-open": flag().default(false),
});

const grpcOptions = z.object({
  "grpc-service-name": text().default("GunService"),
  "grpc-user-agent": text().optional(),
  "ping-interval": int(0, 86_400).default(0),
  "max-connections": int(0, 1000).default(0),
  "min-streams": int(0, 1000).default(0),
  "max-streams": int(0, 1000).default(0),
});

const h2Options = z.object({
  host: list(name()).default(["www.example.com"]),
  path: text().default("/"),
});

const httpOptions = z.object({
  method: text().default("GET"),
  path: list(text()).default(["/"]),
  headers: mapOf(list(text())).default({}),
});

/** Where XHTTP puts what, and how it hides: a server that wants it so understands nothing else. */
const xhttpForms = Object.fromEntries(
  [
    "x-padding-obfs-mode",
    "x-padding-key",
    "x-padding-header",
    "x-padding-placement",
    "x-padding-method",
    "uplink-http-method",
    "session-placement",
    "session-key",
    "session-table",
    "session-length",
    "seq-placement",
    "seq-key",
    "uplink-data-placement",
    "uplink-data-key",
    "uplink-chunk-size",
    "extra",
  ].map((key) => [key, unsupported("this form of XHTTP is not in this build")]),
);

/** Padding lengths are those of Xray's defaults; a server that is configured for other lengths refuses them. */
const paddingBytes = () =>
  scalar({ type: "string", const: "100-1000" }, (source) =>
    ["", "0", "100-1000"].includes(source.trim())
      ? "100-1000"
      : new Unsupported("another padding than 100-1000 is not in this build"),
  );

/** `10-50` is chosen from at random elsewhere; its beginning is in it. */
const startOfRange = (minimum: number, maximum: number) =>
  scalar({ type: ["string", "integer"] }, (source) => {
    const ranges = parseRanges(source, minimum, maximum);
    return ranges instanceof Fault ? ranges : itemAt(ranges, 0).from;
  });

const xhttpOptions = z.object({
  ...xhttpForms,
  "x-padding-bytes": paddingBytes().optional(),
  "reuse-settings": z.unknown().optional(), // no part of what goes over a connection: without effect, with a note
  "download-settings": unsupported("another server for the downloads is not in this build"),
  path: text().default("/"),
  host: text().optional(),
  mode: unsetAs(choice(["auto", "packet-up", "stream-one", "stream-up"]), "auto").default("auto"),
  headers: headerMap().default({}),
  "no-grpc-header": flag().default(false),
  "sc-max-each-post-bytes": unsetAs(startOfRange(1, 1_000_000), 1_000_000).default(1_000_000),
  "sc-min-posts-interval-ms": unsetAs(startOfRange(0, 10_000), 30).default(30),
});

export const NETWORKS = ["tcp", "http", "h2", "ws", "grpc", "xhttp"] as const;
export type TransportNetwork = (typeof NETWORKS)[number];

/** `raw` is what Xray calls TCP. Another transport costs the node: over TCP its server would not understand it. */
const network = <const T extends readonly TransportNetwork[]>(networks: T) =>
  scalar({ type: "string", enum: ["", ...networks, "raw"] }, (source, raw): "" | T[number] | Unsupported => {
    const wanted = source === "raw" ? "tcp" : source;
    const found = wanted === "" ? wanted : networks.find((word) => word === wanted);
    return (
      found ??
      new Unsupported(`the transport ${show(raw)} is not in this build${suggestion(source, networks)}`)
    );
  });

/** `networks` names what the protocol offers; the blocks of the others are left out of the schema's use, not refused. */
export const transportClientFields = <const T extends readonly TransportNetwork[]>(networks: T) => ({
  network: network(networks).default(""),
  "ws-opts": wsOptions.optional(),
  "grpc-opts": grpcOptions.optional(),
  "h2-opts": h2Options.optional(),
  "http-opts": httpOptions.optional(),
  "xhttp-opts": xhttpOptions.optional(),
});

export interface TransportClientFields {
  readonly network: "" | TransportNetwork;
  readonly "ws-opts"?: z.output<typeof wsOptions> | undefined;
  readonly "grpc-opts"?: z.output<typeof grpcOptions> | undefined;
  readonly "h2-opts"?: z.output<typeof h2Options> | undefined;
  readonly "http-opts"?: z.output<typeof httpOptions> | undefined;
  readonly "xhttp-opts"?: z.output<typeof xhttpOptions> | undefined;
}

const h2ServerOptions = z.object({ host: list(name()).default([]), path: text().default("/") });

/**
 * Settings of XHTTP servers that this server does not implement and that a share link cannot carry. Opening a listener
 * with one of them logs a warning.
 */
export const XHTTP_TUNING = [
  "no-sse-header",
  "sc-max-buffered-posts",
  "sc-max-each-post-bytes",
  "sc-stream-up-server-secs",
] as const;

const xhttpServerOptions = z.object({
  ...xhttpForms,
  "x-padding-bytes": paddingBytes().optional(),
  /** As written in the configuration; empty means `/`. */
  path: text().default(""),
  /** Requests for another host are refused; empty: any. */
  host: text().default(""),
  /** The mode in share links. Every one is served; with `stream-one` that alone. */
  mode: choice(["", "auto", "packet-up", "stream-one", "stream-up"]).default(""),
  "no-sse-header": text().optional(),
  "sc-max-buffered-posts": text().optional(),
  "sc-max-each-post-bytes": text().optional(),
  "sc-stream-up-server-secs": text().optional(),
});

/** Keys of the listeners that speak through a transport. All that are set are served on the one port. */
export const transportServerFields = {
  alpn: list(choice(["h3", "h2", "http/1.1"])).optional(),
  "ws-path": text().optional(),
  "grpc-service-name": text().optional(),
  "h2-config": h2ServerOptions.optional(),
  "xhttp-config": xhttpServerOptions.optional(),
};

export interface TransportServerFields {
  /** What clients may agree on; absent: all that the transports speak over TCP. With `h3` XHTTP is served over UDP, too. */
  readonly alpn?: readonly string[] | undefined;
  readonly "ws-path"?: string | undefined;
  readonly "grpc-service-name"?: string | undefined;
  readonly "h2-config"?: z.output<typeof h2ServerOptions> | undefined;
  readonly "xhttp-config"?: z.output<typeof xhttpServerOptions> | undefined;
}

/** Filled in where a node names a network and leaves out its block. */
export const transportDefaults = {
  ws: () => wsOptions.parse({}),
  grpc: () => grpcOptions.parse({}),
  h2: () => h2Options.parse({}),
  http: () => httpOptions.parse({}),
  xhttp: () => xhttpOptions.parse({}),
};
