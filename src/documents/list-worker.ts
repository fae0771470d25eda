/** The program of a thread that reads one list of rules. */
import { workerData } from "node:worker_threads";
import { readListParts, type ListParts } from "#providers/rule-set/read.ts";
import { answer } from "./answer.ts";
import { receivedBytes } from "./bytes.ts";
import type { ListReply, ListRequest } from "./messages.ts";
import { buffersOf } from "./packed.ts";

const { length, kind }: ListRequest = workerData;
await answer<ListReply>(
  async () => ({ parts: await readListParts(await receivedBytes(length), kind) }),
  ({ parts }) => buffersOf(arraysOf(parts)),
);

/** Each array of a table has a buffer of its own. */
function arraysOf(parts: ListParts): readonly unknown[] {
  if ("lines" in parts) return [];
  const { list } = parts;
  return list.behavior === "domain"
    ? Object.values(list.parts)
    : [...Object.values(list.parts.v4), ...Object.values(list.parts.v6), list.packed];
}
