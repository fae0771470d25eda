/** What main thread and reading thread say to each other. Errors cross as their words: classes do not survive. */
import type { ListKind, ListParts } from "#providers/rule-set/read.ts";

export interface ReadRequest {
  readonly bytes: Uint8Array;
  readonly kind: ListKind;
}

export type ReadReply =
  | { readonly parts: ListParts; readonly fault?: never }
  | { readonly parts?: never; readonly fault: string };
