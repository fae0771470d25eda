/** What main thread and reading thread say to each other. */
import type { ListKind, ListParts } from "#providers/rule-set/read.ts";
import type { PackedContent } from "./node-list.ts";

/** The nodes of a proxy provider. */
export interface NodesRequest {
  /** How many bytes follow, at least one. */
  readonly length: number;
}

export interface ListRequest extends NodesRequest {
  readonly kind: ListKind;
}

export interface FaultReply {
  readonly about: "fault";
  readonly fault: string;
}

export interface NodesReply {
  readonly content: PackedContent;
}

export interface ListReply {
  readonly parts: ListParts;
}
