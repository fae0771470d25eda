import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { acceptRollback } from "#store/high-mark.ts";
import { UsageError } from "./flags.ts";

/** `weir accept-rollback STORE`: what a store that went back holds is what is meant. Not while weir has it open. */
export function acceptRollbackOf(args: readonly string[]): number {
  const [path, ...more] = args;
  if (path === undefined || more.length > 0) throw new UsageError("accept-rollback: expected one store");
  if (!existsSync(path)) throw new UsageError(`accept-rollback: there is no ${path}`);
  acceptRollback(resolve(path));
  process.stdout.write("what the store holds is what is meant\n");
  return 0;
}
