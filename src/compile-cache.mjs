// What a checkout has compiled once is kept, so that later starts and threads need no parser, and no stripping of types.
import { enableCompileCache } from "node:module";

export function keepCompiled() {
  enableCompileCache();
}
