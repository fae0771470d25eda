/** Child of controller.ts: a fresh program with a full table. Reports what each of its first answers cost. */
import { openController } from "#api/open-controller.ts";
import { SILENT } from "#core/log.ts";
import { OPEN_OPTIONS } from "../test/support/api-app.ts";
import { fullTable } from "./controller-table.ts";

const control = fullTable(Number(process.argv[2]));
const listeners = { http: { host: "127.0.0.1", port: 0 } };
const controller = await openController({ ...OPEN_OPTIONS, listeners }, control, SILENT);
let before = process.cpuUsage();
process.on("message", (what) => {
  if (what === "begin") {
    before = process.cpuUsage();
    process.send?.(0);
    return;
  }
  const { user, system } = process.cpuUsage(before);
  process.send?.((user + system) / 1000);
});
process.on("disconnect", () => process.exit());
process.send?.(controller.endpoints[0]?.port);
