/** A process that makes one change to a store when it is told to, says how it was answered, and dies at once. */
import { once } from "node:events";
import { writeSync } from "node:fs";
import { SILENT } from "#core/log.ts";
import { UndecidedError } from "#store/cut-log.ts";
import { InterruptedError } from "#store/opened-store.ts";
import { openStoreThread } from "#store/store-thread.ts";

const [path, value, more] = process.argv.slice(2) as [string, string, string];
const { store } = await openStoreThread({ path, parts: ["users"], nowMs: Date.now, log: SILENT });
const change = (text: string) => [{ part: "users", key: "k", value: Buffer.from(text.repeat(100)) }];
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
process.kill(process.pid, "SIGKILL");
