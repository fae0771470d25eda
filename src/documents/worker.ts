/** The program of a thread that reads one list of rules or nodes. */
import { workerData } from "node:worker_threads";
import { readListParts, type ListParts } from "#providers/rule-set/read.ts";
import { answer } from "./answer.ts";
import type { ReadReply, ReadRequest } from "./messages.ts";
import { contentIn, packContent } from "./node-list.ts";
import { buffersOf } from "./packed.ts";

const { bytes, kind } = workerData as ReadRequest;
await answer<ReadReply>(
  async () =>
    kind === null
      ? { about: "nodes", content: packContent(contentIn(bytes)) }
      : { about: "list", parts: await readListParts(bytes, kind) },
  (reply) => (reply.about === "nodes" ? buffersOf(reply.content.nodes) : buffersOf(arraysOf(reply.parts))),
);

/** Each array of a table has a buffer of its own. */
function arraysOf(parts: ListParts): readonly unknown[] {
  if ("lines" in parts) return [];
  const { list } = parts;
  return list.behavior === "domain"
    ? Object.values(list.parts)
    : [...Object.values(list.parts.v4), ...Object.values(list.parts.v6), list.packed];
}
