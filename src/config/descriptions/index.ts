/** What the keys of the file mean: hover text of editors, and the reference of keys in the manual. */
import { controller } from "./controller.ts";
import type { Descriptions } from "#core/key-descriptions.ts";
import { dns } from "./dns.ts";
import { general } from "./general.ts";
import { groups } from "./groups.ts";
import { listeners } from "./listeners.ts";
import { nodes } from "./nodes.ts";
import { service } from "./service.ts";
import { transports } from "./transports.ts";
import { tun } from "./tun.ts";

/** Each key stands in one of them. */
export const DESCRIPTIONS: readonly Descriptions[] = [
  general,
  controller,
  dns,
  tun,
  service,
  groups,
  nodes,
  transports,
  listeners,
];

export interface KeyDescription {
  /** The name under which it is kept. */
  readonly name: string;
  readonly text: string;
  /** A value as the file could have it; undefined: there is none. */
  readonly example: unknown;
}

/**
 * What the key at the end of a path means; `*` stands for names that users choose. The longest name that fits counts:
 * `dns.listen` before `listen`. Null: nothing describes it. `own`: what a protocol says of its keys, which goes first.
 */
export function describeKey(path: readonly string[], own: Descriptions = {}): KeyDescription | null {
  for (const source of [[own], DESCRIPTIONS])
    for (let from = 0; from < path.length; from++) {
      const name = path.slice(from).join(".");
      const found = source.find((descriptions) => Object.hasOwn(descriptions, name))?.[name];
      if (found === undefined) continue;
      return typeof found === "string"
        ? { name, text: found, example: undefined }
        : { name, text: found[0], example: found[1] };
    }
  return null;
}
