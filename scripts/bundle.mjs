// From the sources to the files of a build. docs/adr/0072 says why they are scripts, and why they are cut as they are.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Parts of the program with a file of their own, by the names under which they are imported: each brings libraries along. */
const PARTS = { "#api/index.ts": "api", "#fleet/index.ts": "fleet", "#acme/index.ts": "acme" };

const THREADS = {
  "nft-worker": "src/platform/linux/nft/worker.ts",
  "relay-worker": "src/dataplane/workers/worker/main.ts",
  "quic-worker": "src/dataplane/workers/worker/quic-main.ts",
  "store-thread": "src/store/worker.ts",
  "list-thread": "src/documents/list-worker.ts",
  "node-thread": "src/documents/node-worker.ts",
  "config-thread": "src/cli/config-thread.ts",
  "restore-thread": "src/app/restore/thread.ts",
};

/** The program, its parts and its threads as `NAME.cjs` in `outdir`; `version`: what the program calls itself. */
export async function bundleTo(outdir, version) {
  const bundle = (name, entry, more) =>
    build({ ...OPTIONS, ...entry, ...more, ...defined(version), outfile: join(outdir, `${name}.cjs`) });
  const program = join(root, "src/main.ts");
  const { metafile } = await bundle(
    "weir",
    { entryPoints: [program] },
    { plugins: [later], metafile: true, write: false },
  );
  const ofProgram = new Set(Object.keys(metafile.inputs));
  const lent = new Set();
  for (const [entry, name] of Object.entries(PARTS)) {
    const entryPoints = [join(root, "src", entry.slice(1))];
    await bundle(name, { entryPoints }, { plugins: [borrowed(ofProgram, lent), later] });
  }
  const lines = [...lent].map(
    (path) => `exports[${JSON.stringify(path)}]=()=>require(${JSON.stringify(`./${path}`)});`,
  );
  const contents = `${lines.join("\n")}\nrequire("./src/main.ts");`;
  await bundle("weir", { stdin: { contents, resolveDir: root } }, { plugins: [later] });
  for (const [name, path] of Object.entries(THREADS))
    await bundle(name, { entryPoints: [join(root, path)] }, { plugins: [later] });
}

/** A script whose value is a function: src/load-part.mjs calls it. */
const OPTIONS = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node26",
  charset: "ascii", // it is read as Latin-1
  minifySyntax: true,
  minifyWhitespace: true, // names stay: a fault that a user reports says where it was
  legalComments: "none",
  logLevel: "warning",
  banner: { js: "(function(require,exports,module,__filename,__dirname,__fileUrl){" },
  footer: { js: "})" },
};

function defined(version) {
  const define = {
    WEIR_BUILD: JSON.stringify(version),
    "import.meta.url": "__fileUrl",
    "import.meta.filename": "__filename",
    "import.meta.dirname": "__dirname",
  };
  return { define };
}

/** What is imported when it is needed is only run then, and stays in the file where it is no part of its own. */
const later = {
  name: "later",
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      const contents = text.replace(/\bawait import\(("[^"]+")\)/g, (_, name) => {
        const part = PARTS[JSON.parse(name)];
        return part === undefined ? `require(${name})` : `require("part:${part}")`;
      });
      return { contents, loader: "ts", resolveDir: dirname(path) };
    });
    onResolve({ filter: /^part:/ }, ({ path }) => ({ path, external: true }));
  },
};

/** A part takes from the program what both have: `ofProgram` are the files of the program, `lent` gets those that are asked for. */
function borrowed(ofProgram, lent) {
  const plain = { own: true };
  return {
    name: "borrowed",
    setup({ onResolve, resolve }) {
      onResolve({ filter: /./ }, async ({ path, kind, pluginData, ...from }) => {
        if (pluginData === plain || kind === "entry-point" || path.startsWith("part:")) return undefined;
        const found = await resolve(path, {
          kind,
          pluginData: plain,
          importer: from.importer,
          resolveDir: from.resolveDir,
        });
        const file = relative(root, found.path);
        if (found.external || found.errors.length > 0 || !ofProgram.has(file)) return undefined;
        lent.add(file);
        return { path: `program:${file}`, external: true };
      });
    },
  };
}
