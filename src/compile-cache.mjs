// What was compiled once is kept, so that later starts and threads need no parser: the larger half of a thread's memory, and in a
// checkout the stripped sources, too. A build brings it along, made when it was built; another machine's Node makes its own.
import { existsSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { join } from "node:path";

export function keepCompiled() {
  const built = join(import.meta.dirname, "compiled");
  enableCompileCache(existsSync(built) ? { directory: built, portable: true } : undefined);
}
