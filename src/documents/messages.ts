/** What main thread and reading thread say to each other. */
import type { ListKind, ListParts } from "#providers/rule-set/read.ts";
import type { PackedContent } from "./node-list.ts";

/** `kind` null: the nodes of a proxy provider. */
export interface ReadRequest {
  readonly bytes: Uint8Array;
  readonly kind: ListKind | null;
}

export interface FaultReply {
  readonly about: "fault";
  readonly fault: string;
}

export type ReadReply =
  | { readonly about: "list"; readonly parts: ListParts }
  | { readonly about: "nodes"; readonly content: PackedContent };
