/** Changes of a configuration's text that name what they change; everything else keeps its bytes. */
import type { JsonValue } from "./json-value.ts";

/**
 * A key of a map; in a list the index of an item, or text: the `name` or `id` of an item that is a map, or an item that
 * is this text, such as a rule.
 */
export type Step = string | number;

/** Where a new item or key goes; the end where neither is given. */
interface Place {
  readonly before?: Step | undefined;
  readonly after?: Step | undefined;
}

export type Edit =
  /** A new item of the list at `path`, which is made where it is missing. */
  | ({ readonly op: "add"; readonly path: readonly Step[]; readonly value: JsonValue } & Place)
  /** The value at `path`; maps on the way are made, and a place is for a key that is new. */
  | ({ readonly op: "set"; readonly path: readonly Step[]; readonly value: JsonValue } & Place)
  | { readonly op: "remove"; readonly path: readonly Step[] };
