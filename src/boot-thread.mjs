// The start of a thread: what boot.mjs does for the program. It never ends where the thread's program does not.
import { keepCompiled } from "./compile-cache.mjs";

keepCompiled();
await import(process.argv[2]);
