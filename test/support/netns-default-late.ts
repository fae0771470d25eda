/**
 * Runs in a namespace with a device: watches the default interface, and takes the default route away at each of the moments
 * at which beginning to watch takes hold of the C library. Prints what is known in the end.
 */
import { execFileSync } from "node:child_process";
import { watchDefaultInterface } from "#capture/index.ts";
import { SILENT } from "#core/log.ts";
import { until } from "./until.ts";

const [device = ""] = process.argv.slice(2);
const route = (what: string): Buffer => execFileSync("ip", ["route", what, "default", "dev", device]);
const { getBuiltinModule } = process;
let moments = Infinity;
for (let moment = 1; moment <= moments; moment++) {
  route("add");
  let count = 0;
  process.getBuiltinModule = ((name: string) => {
    if (++count === moment) route("del");
    return getBuiltinModule(name);
  }) as typeof getBuiltinModule;
  await using watch = watchDefaultInterface("none", () => {}, { log: SILENT });
  process.getBuiltinModule = getBuiltinModule;
  if (count < moment) route("del");
  moments = count;
  await until(`it is gone, at moment ${moment} of ${count}`, () => watch.current === null);
}
console.log("it was seen each time");
