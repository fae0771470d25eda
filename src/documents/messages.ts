/** What main thread and reading thread say to each other. Errors cross as their words: classes do not survive. */
import type { ListKind, ListParts } from "#providers/rule-set/read.ts";
import type { PackedContent } from "./node-list.ts";

/** `kind` null: the nodes of a proxy provider. */
export interface ReadRequest {
  readonly bytes: Uint8Array;
  readonly kind: ListKind | null;
}

export type ReadReply =
  | { readonly about: "list"; readonly parts: ListParts }
  | { readonly about: "nodes"; readonly content: PackedContent }
  | { readonly about: "fault"; readonly fault: string };
