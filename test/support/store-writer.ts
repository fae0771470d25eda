/** A process that commits to a store until it is killed, and says on its output what has been acknowledged. */
import { writeSync } from "node:fs";
import { SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";

const [path, sizeText, mode] = process.argv.slice(2) as [string, string, string];
const store = Store.open({ path, parts: ["users"], nowMs: Date.now, log: SILENT });
const value = Buffer.alloc(Number(sizeText));
crypto.getRandomValues(value);
for (let at = store.generation + 1; ; at = store.generation + 1) {
  value.writeUInt32BE(at, 0);
  try {
    store.commit([{ part: "users", key: mode === "grow" ? `k${at}` : "k", value }], { backup: at % 2 === 0 });
  } catch (error) {
    writeSync(1, `failed ${(error as Error).name} at ${store.generation}\n`);
    store[Symbol.dispose]();
    process.exit(3);
  }
  writeSync(1, `${at}\n`);
}
