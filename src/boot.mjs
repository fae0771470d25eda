// Runs on any Node: says in one line what is missing where the runtime is too old to read the sources.
// An import of a module of the runtime would read every name of it, and load what hangs on each (docs/adr/0072).
const { existsSync } = process.getBuiltinModule("node:fs");
const { setFlagsFromString } = process.getBuiltinModule("node:v8");

const major = Number.parseInt(process.versions.node, 10);
if (major < 26) {
  console.error(
    `weir needs Node 26, this is ${process.version}: its own runtime is missing, run 'npm ci' once`,
  );
  process.exit(1);
}
// A reload that is asked for while the program still loads must not end it; the file is read later anyhow.
process.on("SIGHUP", () => {}).on("SIGUSR2", () => {});
// While the program loads nearly all that is made stays. V8 learns of it to make arrays and the streams' tables of listeners
// among the old objects for ever, where those of a connection are found dead only when the whole heap is collected.
setFlagsFromString("--no-allocation-site-pretenuring");
// Two minutes behind a load V8 collects the whole heap to give memory back, and two minutes later once more, for next to nothing.
setFlagsFromString("--memory-reducer-gc-count=1");
// Between collections the old objects may double, not grow fourfold. A smaller bound has a cliff: at a half and below the buffers
// of a stream that the event loop relays bring about whole collections all the time, which take 40 % of its CPU time.
setFlagsFromString("--heap-growing-percent=100");
// The young objects are collected by the main thread alone: helpers that wait for a core would hold up every connection.
setFlagsFromString("--no-parallel-scavenge");
// A page of young objects of which a fifth is alive becomes a page of old ones as it is: copying such pages in the one step of a
// large collection would take the main thread up to 60 ms while it builds the tables of a large document.
setFlagsFromString("--page-promotion-threshold=20");
// A reload runs code that has rested since the one before: compiled anew it would take the main thread tens of milliseconds.
setFlagsFromString("--no-flush-bytecode");
// The same file starts a checkout and a build, which has its program in one file.
if (existsSync(new URL("main.ts", import.meta.url))) {
  (await import("./compile-cache.mjs")).keepCompiled();
  await import("./main.ts");
} else (await import("./load-part.mjs")).runPart("weir");
