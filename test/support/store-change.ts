/**
 * A process that makes one change to a store when it is told to, says how it was answered, and dies at once; or goes on
 * when it is told so, until another change is taken, and ends in order.
 */
import { once } from "node:events";
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { SILENT } from "#core/log.ts";
import { UndecidedError } from "#store/cut-log.ts";
import { InterruptedError } from "#store/opened-store.ts";
import { openSupervisedStore } from "#store/supervised-store.ts";

const [path, value, more, end] = process.argv.slice(2) as [string, string, string, "kill" | "go on"];
const options = { path, parts: ["users"], isMarked: true, nowMs: Date.now, log: SILENT };
const { store } = await openSupervisedStore(options);
const change = (text: string, key = "k") => [{ part: "users", key, value: Buffer.from(text.repeat(100)) }];
for (let nth = 0; nth < Number(more); nth++) await store.commit(change(`before ${nth} `), { backup: true });
writeSync(1, "ready\n");
await once(process.stdin, "data");
try {
  await store.commit(change(value), { backup: true });
  writeSync(1, "acknowledged\n");
} catch (error) {
  const isOpen = error instanceof UndecidedError || error instanceof InterruptedError;
  writeSync(1, isOpen ? "undecided\n" : "refused\n");
}
if (end === "kill") process.kill(process.pid, "SIGKILL");
await once(process.stdin, "data");
while (!(await taken())) await sleep(20);
await store.close();
process.exit();

/** The first commits may meet a thread that is just ending, or one that is being started. */
async function taken(): Promise<boolean> {
  return store.commit(change("later ", "later"), { backup: true }).then(
    () => true,
    () => false,
  );
}
