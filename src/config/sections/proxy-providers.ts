/** `proxy-providers`: remote, local or inline lists of nodes. */
import { createHash } from "node:crypto";
import {
  anyUrl,
  block,
  choice,
  filePath,
  flag,
  httpUrlFault,
  int,
  leftOut,
  list,
  mapOf,
  maybe,
  pattern,
  secret,
  text,
  unsetAs,
} from "#core/fields.ts";
import { parseRanges, ranges, type Range } from "#core/ranges.ts";
import * as z from "zod";
import { IP_VERSIONS } from "#config/proxy-fields.ts";
import { mark } from "./general.ts";

const ANY_STATUS = parseRanges("*", 0, 65_535) as readonly Range[];

/** HTTP status codes that count as success. */
export const expectedStatus = () => leftOut(ranges(0, 65_535)).default(ANY_STATUS);

/** What every downloaded list has. Seconds, bytes. */
export const SOURCE = {
  type: choice(["http", "file", "inline"]),
  url: maybe(anyUrl()),
  path: maybe(filePath()),
  interval: leftOut(int(0, 0x7fff_ffff)).default(0),
  proxy: text().default(""),
  header: mapOf(list(text())).default({}),
  "size-limit": leftOut(int(0)).default(0),
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
      url: maybe(anyUrl()),
      /** Seconds. */
      interval: leftOut(int(0, 0x7fff_ffff)).default(300),
      /** Milliseconds. */
      timeout: unsetAs(leftOut(int(0, 600_000)), 5000).default(5000),
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
    "interface-name": maybe(text()),
    "routing-mark": maybe(leftOut(mark())),
    "ip-version": maybe(leftOut(choice(IP_VERSIONS, { fold: true }))),
    "additional-prefix": text().default(""),
    "additional-suffix": text().default(""),
    "proxy-name": list(block({ pattern: pattern(), target: text() })).default([]),
    "override-expr": maybe(text()),
  }).prefault({}),
  "age-secret-key": maybe(secret()),
}).transform((value, context) => {
  if (value.type === "inline" && value.payload.length === 0)
    context.issues.push({
      code: "custom",
      path: ["payload"],
      message: "needs at least one item for type inline",
      input: value,
    });
  const source = sourceOf(value);
  return { ...value, ...source, path: source.path ?? defaultPath("proxies", source.url) };
});

export interface SourceKeys {
  readonly type: "http" | "file" | "inline";
  readonly url: string | null;
  readonly path: string | null;
}

export interface UsableSource extends SourceKeys {
  /** What the source lacks; then nothing is fetched, and what lies in the file or in `payload` is all there is. */
  readonly lack: { readonly key: "url" | "path" | "format" | "payload"; readonly why: string } | null;
}

/** Other programs start with a source that leads nowhere, and so does this one. */
export function sourceOf({ type, url, path }: SourceKeys): UsableSource {
  const file = path === null ? "inline" : "file";
  if (type === "http") {
    const fault = url === null ? `is required for type ${type}` : (httpUrlFault(url)?.message ?? null);
    if (fault !== null) return { type: file, url: null, path, lack: { key: "url", why: fault } };
  }
  if (type === "file" && path === null)
    return { type: file, url, path, lack: { key: "path", why: `is required for type ${type}` } };
  return { type, url, path, lack: null };
}

/** Below the home directory; empty for a source without a URL. */
export function defaultPath(folder: string, url: string | null): string {
  return url === null ? "" : `${folder}/${createHash("md5").update(url).digest("hex")}`;
}
