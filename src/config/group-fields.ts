/** Fields that every group has, whatever picks its members. */
import { anyUrl, flag, int, leftOut, list, maybe, name, pattern, text, unsetAs } from "#core/fields.ts";
import * as z from "zod";
import { expectedStatus } from "./sections/proxy-providers.ts";

export const groupFields = z.object({
  name: name(),
  type: name(),
  proxies: list(text()).default([]),
  use: list(text()).default([]),
  url: maybe(anyUrl()),
  interval: maybe(leftOut(int(0, 0x7fff_ffff))),
  lazy: flag().default(true),
  timeout: unsetAs(leftOut(int(0, 600_000)), 5000).default(5000),
  "max-failed-times": unsetAs(leftOut(int(0, 1_000_000)), 5).default(5),
  "expected-status": expectedStatus(),
  "disable-udp": flag().default(false),
  filter: text().default(""),
  "exclude-filter": text().default(""),
  "exclude-type": text().default(""),
  "include-all": flag().default(false),
  "include-all-proxies": flag().default(false),
  "include-all-providers": flag().default(false),
  hidden: flag().default(false),
  icon: text().default(""),
  "empty-fallback": text().default("COMPATIBLE"),
  "default-selected": text().default(""),
  "interface-name": maybe(text()),
  "routing-mark": maybe(int()),
  "dialer-proxy": maybe(text()),
});

/** Several expressions joined by a backtick. Throws nothing; the first that is none is answered. */
export function filterFault(source: string): string | null {
  for (const part of source.split("`")) {
    const result = pattern().safeParse(part);
    if (!result.success) return `${JSON.stringify(part)} is ${result.error.issues[0]?.message ?? "wrong"}`;
  }
  return null;
}
