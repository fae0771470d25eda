/** What the programs of reading threads have in common: one document, one answer, the end. */
import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { messageOf } from "#core/errors.ts";
import type { FaultReply } from "./messages.ts";

/** On Linux a priority belongs to the thread: relaying goes first where cores are few. */
const NICE = 5;

/** `read` answers with its reply and what is handed over without a copy. Errors cross as their words: classes do not survive. */
export async function answer<Reply>(
  read: () => Reply | Promise<Reply>,
  transferred: (reply: Reply) => ArrayBuffer[],
): Promise<void> {
  if (process.platform === "linux") setPriority(0, NICE);
  let reply: Reply;
  try {
    reply = await read();
  } catch (error) {
    const fault: FaultReply = { about: "fault", fault: messageOf(error) };
    parentPort?.postMessage(fault);
    return;
  }
  parentPort?.postMessage(reply, transferred(reply));
}
