// Which files types and the rules that need types must be checked in: those that changed since nothing was found in them,
// and all that import those, or what is gone, over however many files. Nothing else that their types come from can have
// changed.
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const SOURCES = "{src,ui,test,bench,scripts}/**/*.{ts,tsx,mjs}";
/** With another rule, setting or library nothing is known any more; nor with declarations that no file imports. */
const SETTINGS = [".oxlintrc.json", "package-lock.json", "tsconfig.json", "ui/tsconfig.json"];
const AMBIENT = "{src,ui,test,bench,scripts}/**/*.d.ts";
const IMPORTED = /\b(?:from|import)\s*\(?\s*"([^"]+)"/g;

/** `file`: where the last state is kept. `save` is called when the linter has found nothing in `affected`. */
export function openLintState(file) {
  const { type, imports } = JSON.parse(textOf("package.json")); // its scripts change no type
  const settings = [...SETTINGS, ...globSync(AMBIENT).sort()].map(textOf);
  const now = { settings: hashOf([JSON.stringify([type, imports]), ...settings].join("\n")), files: {} };
  const importers = new Map();
  for (const path of globSync(SOURCES).sort()) {
    const text = textOf(path);
    now.files[path] = hashOf(text);
    for (const [, name] of text.matchAll(IMPORTED)) {
      const target = targetOf(path, name);
      if (target !== null) importers.set(target, [...(importers.get(target) ?? []), path]);
    }
  }
  return {
    files: Object.keys(now.files),
    affected: affectedBy(changedSince(read(file), now), importers).filter((path) => existsSync(path)),
    save() {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, JSON.stringify(now));
    },
  };
}

function changedSince(before, now) {
  if (before?.settings !== now.settings) return Object.keys(now.files);
  const paths = Object.keys({ ...before.files, ...now.files });
  return paths.filter((path) => before.files[path] !== now.files[path]);
}

function affectedBy(changed, importers) {
  const affected = new Set(changed);
  for (const path of affected) for (const importer of importers.get(path) ?? []) affected.add(importer); // a Set yields what is added meanwhile
  return [...affected];
}

function targetOf(path, name) {
  if (name.startsWith("#ui/")) return name.slice(1);
  if (name.startsWith("#")) return `src/${name.slice(1)}`;
  return name.startsWith(".") ? join(dirname(path), name) : null;
}

function read(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return null; // none yet, or cut short
  }
}

function textOf(path) {
  return readFileSync(path, "utf8");
}

function hashOf(text) {
  return createHash("sha256").update(text).digest("base64url");
}
