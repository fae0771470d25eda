/** Items of `listeners` with the type tun: the keys of the block `tun`, with addresses of their own and other defaults. */
import { camelCase, flag, list } from "#core/fields.ts";
import { prefix } from "#net/address/address-fields.ts";
import * as z from "zod";
import type { Context } from "./context.ts";
import { issueText, joined, readBoth } from "./items.ts";
import { listenerFields } from "./listener-fields.ts";
import type { Path } from "./report.ts";
import type { TunConfig } from "./sections/index.ts";
import { TUN } from "./sections/tun.ts";

export interface TunListenerConfig extends TunConfig {
  readonly name: string;
  readonly ruleList: string | null;
  readonly target: string | null;
  /** Its place in the file. */
  readonly index: number;
}

/** The keys besides those that every listener has. */
export const tunListenerFields = z.object({
  ...TUN,
  enable: flag().default(true),
  "auto-route": flag().default(false),
  "auto-detect-interface": flag().default(false),
  "inet4-address": list(prefix(4)).default([]),
  "inet6-address": list(prefix(6)).default([]),
});

/** Null with everything reported. */
export function readTunListener(
  context: Context,
  item: Readonly<Record<string, unknown>>,
  index: number,
  path: Path,
  title: string,
): TunListenerConfig | null {
  const prepared = context.prepare(joined(listenerFields, tunListenerFields), item, path, "hyphen", title);
  const read = readBoth(context, listenerFields, tunListenerFields, prepared, path, title);
  if (read === null) return null;
  const { common, options } = read;
  const [lack] = read.unsupported;
  if (lack !== undefined) {
    const why = `${title}: ${common.name}: ${issueText(lack)}; the listener is left out`;
    context.report.warning([...path, ...lack.path], why);
    return null;
  }
  const entries = Object.entries(options).map(([key, value]) => [camelCase(key), value] as const);
  return {
    ...(Object.fromEntries(entries) as unknown as TunConfig),
    name: common.name,
    ruleList: common.rule === "" ? null : common.rule,
    target: common.proxy === "" ? null : common.proxy,
    index,
  };
}
