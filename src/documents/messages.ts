/** What main thread and reading thread say to each other. */
import type { ReadList } from "#providers/rule-set/contents.ts";
import type { ListKind } from "#providers/rule-set/read.ts";
import type { PackedContent } from "./node-list.ts";
import type { PackedValue } from "./packed.ts";

/** The nodes of a proxy provider. */
export interface NodesRequest {
  /** How many bytes follow, at least one. */
  readonly length: number;
}

export interface ListRequest extends NodesRequest {
  readonly kind: ListKind;
}

export type ThreadReply<Reply> =
  | {
      readonly kind: "answer";
      readonly reply: Reply;
      /** Of the thread, behind the document. */
      readonly heapMiB: number;
    }
  | { readonly kind: "fault"; readonly fault: string };

export interface NodesReply {
  readonly content: PackedContent;
}

export interface ListReply {
  /** Lines come as packed text: hundreds of thousands in one piece would take long to receive. */
  readonly parts: ReadList | { readonly lines: PackedValue };
}
