/** The lock file installs on every platform from any registry. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

interface Entry {
  readonly resolved?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const root = dirname(dirname(fileURLToPath(import.meta.url)));

test("every platform's packages are locked, and no download address is", () => {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Readonly<Record<string, Entry>>;
  };
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter(
        (name) => !(`node_modules/${name}` in packages) && !(`${path}/node_modules/${name}` in packages),
      )
      .map((name) => `${path}: ${name}`),
  );
  assert.deepEqual(missing, [], "npm ci refuses a lock file that does not hold them");
  assert.deepEqual(
    Object.keys(packages).filter((path) => packages[path]?.resolved !== undefined),
    [],
  );
});
