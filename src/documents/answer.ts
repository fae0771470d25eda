/** What the programs of reading threads have in common: one document after the other, an answer for each. */
import { on } from "node:events";
import { setPriority } from "node:os";
import { getHeapStatistics } from "node:v8";
import { parentPort } from "node:worker_threads";
import { messageOf } from "#core/errors.ts";
import type { Messages } from "./bytes.ts";
import type { ThreadReply } from "./messages.ts";

/** On Linux a priority belongs to the thread: relaying goes first where cores are few. */
const NICE = 5;

/**
 * `read` answers a request with its reply, `transferred` is handed over without a copy; `more` is what comes behind the
 * request. Errors cross as their words, because classes do not survive. Goes on until the thread is ended.
 */
export async function answerEach<Request, Reply>(
  read: (request: Request, more: Messages) => Reply | Promise<Reply>,
  transferred: (reply: Reply) => ArrayBuffer[],
): Promise<void> {
  if (parentPort === null) throw new Error("this program is for a thread");
  if (process.platform === "linux") setPriority(0, NICE);
  const messages: Messages = on(parentPort, "message");
  for await (const [request] of messages) {
    const answer = await answerTo(() => read(request, messages));
    parentPort.postMessage(answer, answer.kind === "fault" ? [] : transferred(answer.reply));
  }
}

async function answerTo<Reply>(read: () => Reply | Promise<Reply>): Promise<ThreadReply<Reply>> {
  try {
    const reply = await read();
    return { kind: "answer", reply, heapMiB: heapMiB() };
  } catch (error) {
    return { kind: "fault", fault: messageOf(error) };
  }
}

/** Of this thread, garbage included. */
function heapMiB(): number {
  const { total_heap_size: objects, external_memory: buffers } = getHeapStatistics();
  return Math.round((objects + buffers) / 1024 / 1024);
}
