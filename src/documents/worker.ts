/** The program of a reading thread: one document, one answer, the end. */
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "#core/errors.ts";
import { readListParts, type ListParts } from "#providers/rule-set/read.ts";
import type { ReadReply, ReadRequest } from "./messages.ts";
import { contentIn, packContent } from "./node-list.ts";

/** On Linux a priority belongs to the thread: relaying goes first where cores are few. */
const NICE = 10;

const { bytes, kind } = workerData as ReadRequest;
if (process.platform === "linux") setPriority(0, NICE);
parentPort?.postMessage(...(await answer()));

async function answer(): Promise<[ReadReply, ArrayBuffer[]]> {
  try {
    if (kind === null) return [{ about: "nodes", content: packContent(contentIn(bytes)) }, []];
    const parts = await readListParts(bytes, kind);
    return [{ about: "list", parts }, buffersOf(parts)];
  } catch (error) {
    return [{ about: "fault", fault: messageOf(error) }, []];
  }
}

/** What is handed over without a copy. Each array of a table has a buffer of its own. */
function buffersOf(parts: ListParts): ArrayBuffer[] {
  if ("lines" in parts) return [];
  const { list } = parts;
  const arrays =
    list.behavior === "domain"
      ? Object.values(list.parts)
      : [...Object.values(list.parts.v4), ...Object.values(list.parts.v6), list.packed];
  return arrays.flatMap((array: unknown) =>
    ArrayBuffer.isView(array) && array.buffer instanceof ArrayBuffer ? [array.buffer] : [],
  );
}
