// The start of a thread in a checkout: what boot.mjs does for the program. Stripped sources are kept, so later starts need no
// parser, which would be the larger half of the thread's memory. It never ends where the thread's program does not.
import { enableCompileCache } from "node:module";

enableCompileCache();
await import(process.argv[2]);
