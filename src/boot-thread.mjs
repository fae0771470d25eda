// The start of a thread: what boot.mjs does for the program. It never ends where the thread's program does not.
const [, , file] = process.argv;
if (file.endsWith(".ts")) {
  (await import("./compile-cache.mjs")).keepCompiled();
  await import(file);
} else (await import("./load-part.mjs")).runPart(file);
