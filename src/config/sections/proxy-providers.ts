/** `proxy-providers`: remote, local or inline lists of nodes. */
import { createHash } from "node:crypto";
import {
  block,
  choice,
  filePath,
  flag,
  httpUrl,
  int,
  interfaceName,
  list,
  mapOf,
  maybe,
  parseRanges,
  pattern,
  ranges,
  secret,
  text,
  type Range,
} from "#core/fields.ts";
import { z } from "zod";
import { IP_VERSIONS } from "#config/proxy-fields.ts";
import { mark } from "./general.ts";

const ANY_STATUS = parseRanges("*", 0, 65_535) as readonly Range[];

/** HTTP status codes that count as success. */
export const expectedStatus = () => ranges(0, 65_535).default(ANY_STATUS);

/** What every downloaded list has. Seconds, bytes. */
export const SOURCE = {
  type: choice(["http", "file", "inline"]),
  url: maybe(httpUrl()),
  path: maybe(filePath()),
  interval: int(0, 0x7fff_ffff).default(0),
  proxy: text().default(""),
  header: mapOf(list(text())).default({}),
  "size-limit": int(0).default(0),
};

export const proxyProvider = block({
  ...SOURCE,
  filter: text().default(""),
  "exclude-filter": text().default(""),
  "exclude-type": text().default(""),
  "dialer-proxy": text().default(""),
  payload: z.array(z.unknown(), { error: "expected a list" }).default([]),
  "health-check": maybe(
    block({
      enable: flag().default(false),
      url: maybe(httpUrl()),
      /** Seconds. */
      interval: int(0, 0x7fff_ffff).default(300),
      /** Milliseconds. */
      timeout: int(0, 600_000).default(5000),
      lazy: flag().default(true),
      "expected-status": expectedStatus(),
    }),
  ),
  override: block({
    tfo: maybe(flag()),
    mptcp: maybe(flag()),
    udp: maybe(flag()),
    "udp-over-tcp": maybe(flag()),
    up: maybe(text()),
    down: maybe(text()),
    "dialer-proxy": maybe(text()),
    "skip-cert-verify": maybe(flag()),
    "name-cert-verify": maybe(text()),
    "interface-name": maybe(interfaceName()),
    "routing-mark": maybe(mark()),
    "ip-version": maybe(choice(IP_VERSIONS, { fold: true })),
    "additional-prefix": text().default(""),
    "additional-suffix": text().default(""),
    "proxy-name": list(block({ pattern: pattern(), target: text() })).default([]),
    "override-expr": maybe(text()),
  }).prefault({}),
  "age-secret-key": maybe(secret()),
}).transform((value, context) => {
  const fault = sourceFault(value, value.payload.length);
  if (fault !== null) context.issues.push({ code: "custom", ...fault, input: value });
  return { ...value, path: value.path ?? defaultPath("proxies", value.url) };
});

export interface SourceKeys {
  readonly type: "http" | "file" | "inline";
  readonly url: string | null;
  readonly path: string | null;
}

interface SourceFault {
  readonly path: string[];
  readonly message: string;
  /** Is the key not there, or is what it holds too little? */
  readonly params: { readonly missing: boolean };
}

/** What a source of this kind cannot do without. */
export function sourceFault({ type, url, path }: SourceKeys, payloadItems: number): SourceFault | null {
  const key = type === "http" && url === null ? "url" : type === "file" && path === null ? "path" : null;
  if (key !== null)
    return { path: [key], message: `is required for type ${type}`, params: { missing: true } };
  if (type !== "inline" || payloadItems > 0) return null;
  const message = "needs at least one item for type inline";
  return { path: ["payload"], message, params: { missing: false } };
}

/** Below the home directory; empty for a source without a URL. */
export function defaultPath(folder: string, url: string | null): string {
  return url === null ? "" : `${folder}/${createHash("md5").update(url).digest("hex")}`;
}
