/** Reads a table that another thread writes without a pause, and ends with an error where it finds what never was. */
import { parentPort, workerData } from "node:worker_threads";
import { NAME_VALUES, NameTable } from "#lib/name-table.ts";

const table = new NameTable(workerData);
const values = new Int32Array(NAME_VALUES);
let found = 0;
for (const endMs = Date.now() + 500; Date.now() < endMs;)
  for (let count = 0; count < 100; count++)
    for (const at of [0, 1]) {
      if (!table.find(1, `name-${at}-${count & 3}.test`, values, Date.now())) continue;
      found++;
      const [first = 0] = values;
      const isWhole = values.every((value) => value === first);
      if (!isWhole || (first & 1) !== at || ((first >> 1) & 3) !== (count & 3))
        throw new Error(`of name ${at}, ${count & 3}: ${values.join(" ")}`);
    }
parentPort?.postMessage(found);
