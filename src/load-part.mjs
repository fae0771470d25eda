// How a build runs its files: as scripts, with the code that V8 has made of them in a file beside. That has the functions that a
// start runs, too, where a module's cache (node:module) has none that is compiled when it is first called.
const { readFileSync, writeFileSync } = process.getBuiltinModule("node:fs");
const { join } = process.getBuiltinModule("node:path");
const { pathToFileURL } = process.getBuiltinModule("node:url");
const { Script } = process.getBuiltinModule("node:vm");

/** What `program:` names: the modules that the program lends to its parts. */
let program = {};
const parts = {};

/** Runs `lib/NAME.cjs`, which is the program, a part of it, or the program of a thread. */
export function runPart(name) {
  const file = join(import.meta.dirname, `${name}.cjs`);
  const module = { exports: {} };
  if (name === "weir") program = module.exports;
  const run = compile(file).runInThisContext();
  run(required, module.exports, module, file, import.meta.dirname, pathToFileURL(file).href);
  return module.exports;
}

function required(name) {
  if (name.startsWith("program:")) return program[name.slice(8)]();
  if (name.startsWith("part:")) return (parts[name] ??= runPart(name.slice(5)));
  return process.getBuiltinModule(name);
}

/** Code of another V8, or for other flags, is left aside, and the file is compiled anew. */
function compile(filename) {
  const codeFile = `${filename}.code`;
  const cachedData = bytesOf(codeFile);
  const script = new Script(
    readFileSync(filename, "latin1"),
    cachedData?.length > 0 ? { filename, cachedData } : { filename },
  );
  if (cachedData?.length === 0) keepCode(script, codeFile);
  return script;
}

function bytesOf(file) {
  try {
    return readFileSync(file);
  } catch {
    return null; // a build for another platform has none
  }
}

/** An empty file asks for it: what has been compiled up to now, and up to the end (scripts/build.mjs). */
function keepCode(script, file) {
  const keep = () => writeFileSync(file, script.createCachedData());
  setTimeout(keep, 500).unref();
  process.on("exit", keep);
}
