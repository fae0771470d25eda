import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { SILENT } from "#core/log.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { Store } from "#store/backup.ts";
import { acceptRollback, MARK_SUFFIX } from "#store/high-mark.ts";
import { exportState, importState } from "#users/exchange.ts";
import { PARTS } from "#users/records.ts";
import { UsageError } from "./flags.ts";

/** `weir users export STORE`, `import DOCUMENT STORE`; not while weir has the file open. */
export function users(args: readonly string[]): number {
  const [verb, ...paths] = args;
  if (verb === "export" && paths.length === 1) {
    const [path = ""] = paths;
    if (!existsSync(path)) throw new UsageError(`users: there is no ${path}`);
    using store = open(path);
    process.stdout.write(exportState(store, PROTOCOLS));
    return 0;
  }
  if (verb !== "import" || paths.length !== 2)
    throw new UsageError("users: expected export STORE, or import DOCUMENT STORE");
  const [source = "", path = ""] = paths;
  const text = readFileSync(source, "utf8");
  if (!existsSync(path) && existsSync(path + MARK_SUFFIX)) acceptRollback(resolve(path)); // of a store that is gone
  using store = open(path);
  const count = importState(store, text, PROTOCOLS);
  process.stdout.write(`${count} ${count === 1 ? "user" : "users"}\n`);
  return 0;
}

function open(path: string): Store {
  return Store.open({ path: resolve(path), parts: PARTS, nowMs: Date.now, log: SILENT });
}
