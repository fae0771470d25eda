import { randomUUID } from "node:crypto";
import { UsageError } from "./flags.ts";

/** `weir generate KIND`: fresh key material on standard output. */
export function generate(args: readonly string[]): number {
  const [kind] = args;
  if (kind !== "uuid") throw new UsageError(`generate: expected uuid, got ${kind ?? "nothing"}`);
  process.stdout.write(`${randomUUID()}\n`);
  return 0;
}
