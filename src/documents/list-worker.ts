/** The program of a thread that reads lists of rules. */
import type { ReadList } from "#providers/rule-set/contents.ts";
import { readListParts } from "#providers/rule-set/read.ts";
import { answerEach } from "./answer.ts";
import { receivedBytes } from "./bytes.ts";
import type { ListReply, ListRequest } from "./messages.ts";
import { buffersOf, pack } from "./packed.ts";

void answerEach<ListRequest, ListReply>(
  async ({ length, kind }, pieces) => {
    const parts = await readListParts(await receivedBytes(length, pieces), kind);
    return { parts: "lines" in parts ? { lines: pack(parts.lines) } : parts };
  },
  ({ parts }) => buffersOf("lines" in parts ? parts.lines : arraysOf(parts)),
);

/** Tables lie in shared memory. */
function arraysOf({ list }: ReadList): readonly unknown[] {
  return list.behavior === "domain" ? [] : [list.packed];
}
