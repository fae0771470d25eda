// The licences of everything that a build holds besides its runtime: the packages of the lock file that are no tools.
// `node scripts/notices.mjs` writes THIRD-PARTY-NOTICES.txt anew; a test says whether it is current.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
export const NOTICES_FILE = join(root, "THIRD-PARTY-NOTICES.txt");

/** The text of the file as it should be. Throws where a package gives no licence. */
export function notices() {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const shipped = Object.entries(packages).filter(
    ([path, { dev, optional, devOptional }]) => path !== "" && !dev && !optional && !devOptional,
  );
  const parts = new Set(shipped.map(([path, entry]) => noticeOf(path, entry)));
  return `weir bundles the following packages. Its runtime is Node.js, whose licence stands at the end in a build.\n\n${[...parts].sort().join("\n")}`;
}

function noticeOf(path, { version, license }) {
  const folder = join(root, path);
  const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  const files = readdirSync(folder).filter((entry) => /^(licen[cs]e|copying|notice)/i.test(entry));
  if (files.length === 0 && !license) throw new Error(`${name} ${version} says nothing of its licence`);
  const texts = files
    .sort()
    .map((file) => readFileSync(join(folder, file), "utf8").replaceAll("\r\n", "\n").trim());
  const text = texts.length === 0 ? `Licence: ${license}` : texts.join("\n\n");
  return `==== ${name} ${version} (${license})\n\n${text}\n`;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  writeFileSync(NOTICES_FILE, notices());
