// Bundles the dashboard. `node scripts/ui.mjs` does so where its sources changed. Plain JavaScript: any Node ≥ 20 runs it.
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const sources = join(root, "ui");
/** What the dashboard has of `src/lib`. */
const SHARED = ["at.ts", "languages.ts", "words.ts"];
/** `src/host/ui-folder.ts` looks here. */
const target = join(root, "node_modules", ".cache", "weir-ui");

/** The built files, made anew only where what goes in has changed. Two that run at once do not hurt each other. */
export async function ensureUi() {
  const stamp = digest();
  if (existsSync(join(target, stamp))) return target;
  mkdirSync(dirname(target), { recursive: true });
  const work = mkdtempSync(`${target}-`);
  try {
    await buildUi(join(work, "new"));
    mkdirSync(join(work, "new", stamp));
    if (existsSync(target)) renameSync(target, join(work, "old"));
    renameSync(join(work, "new"), target);
  } catch (error) {
    if (!existsSync(join(target, stamp))) throw error; // otherwise another process was faster
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return target;
}

/** Into a folder of its own. When it returns the bundler's process has ended, too. */
export async function buildUi(out) {
  const { build, stop } = await import("esbuild"); // not before it is known to be needed: most starts are not
  try {
    await build({
      entryPoints: [
        { in: join(sources, "main.tsx"), out: "app" },
        { in: join(sources, "styles/main.css"), out: "app" },
      ],
      outdir: out,
      bundle: true,
      format: "esm",
      charset: "utf8",
      splitting: true, // languages other than English are fetched when they are wanted
      chunkNames: "[name]-[hash]",
      target: ["chrome123", "firefox128", "safari17.5"],
      minify: true,
      legalComments: "none",
      logLevel: "warning",
      tsconfig: join(sources, "tsconfig.json"),
    });
  } finally {
    await stop(); // it would stay for as long as the program that is started next
  }
  cpSync(join(sources, "static"), out, { recursive: true });
}

/** Of the sources and of the versions that turn them into files. */
function digest() {
  const hash = createHash("sha256").update(readFileSync(fileURLToPath(import.meta.url)));
  for (const name of ["esbuild", "preact", "qr", "uplot"])
    hash.update(readFileSync(join(root, "node_modules", name, "package.json")));
  const files = [
    ...readdirSync(sources, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, path, name }) => join(parentPath ?? path, name)),
    ...SHARED.map((file) => join(root, "src", "lib", file)),
  ].sort((a, b) => (a < b ? -1 : 1));
  for (const file of files) hash.update(`\0${file.slice(root.length)}\0`).update(readFileSync(file));
  return `.${hash.digest("hex").slice(0, 20)}`;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  console.log(await ensureUi());
