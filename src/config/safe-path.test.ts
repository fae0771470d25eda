import assert from "node:assert/strict";
import {
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { test, type TestContext } from "node:test";
import { ConfigError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { openSafeFiles, safePathEnvironment } from "./safe-path.ts";

interface Folders {
  readonly home: string;
  readonly extra: string;
  readonly outside: string;
}

function folders(context: TestContext): Folders {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "weir-safe-")));
  context.after(() => rmSync(root, { recursive: true }));
  const made = { home: join(root, "home"), extra: join(root, "extra"), outside: join(root, "outside") };
  for (const folder of Object.values(made)) mkdirSync(folder);
  return made;
}

test("paths inside the home directory and the safe paths are resolved, others are refused by name", (context) => {
  const { home, extra, outside } = folders(context);
  const files = openSafeFiles({ home, safePaths: [extra], log: SILENT });
  assert.equal(files.resolve("a/b/not-there.pem"), join(home, "a/b/not-there.pem"));
  assert.equal(files.resolve("."), home);
  assert.equal(files.resolve("..weird"), join(home, "..weird"));
  assert.equal(files.resolve(join(extra, "x")), join(extra, "x"));
  const bad = ["../outside/x", outside, `${home}-sibling/x`, "a/../../outside", "/etc/passwd", "a\0b"];
  for (const path of bad) assert.throws(() => files.resolve(path), ConfigError, path);
  assert.throws(() => files.resolve(outside), new RegExp(`${outside}.*allowed: ${home}, ${extra}`));
  assert.equal(openSafeFiles({ home, unchecked: true, log: SILENT }).resolve("/etc/x"), "/etc/x");
});

test("links count as what they lead to", (context) => {
  const { home, outside } = folders(context);
  const files = openSafeFiles({ home, log: SILENT });
  mkdirSync(join(home, "real"));
  symlinkSync(join(home, "real"), join(home, "inner"));
  symlinkSync(outside, join(home, "escape"));
  symlinkSync(join(home, "nowhere"), join(home, "dangling"));
  symlinkSync(join(home, "circle"), join(home, "circle"));
  assert.equal(files.resolve("inner/x"), join(home, "inner/x"));
  for (const path of ["escape", "escape/x", "escape/deep/er", "dangling", "dangling/x", "circle"])
    assert.throws(() => files.resolve(path), ConfigError, path);
  symlinkSync(home, join(outside, "home-link"));
  assert.doesNotThrow(() => openSafeFiles({ home: join(outside, "home-link"), log: SILENT }).resolve("x"));
});

test("the environment", () => {
  const both = { SAFE_PATHS: `/a${delimiter}${delimiter}/b`, SKIP_SAFE_PATH_CHECK: "TRUE" };
  assert.deepEqual(safePathEnvironment(both), { safePaths: ["/a", "/b"], unchecked: true });
  assert.deepEqual(safePathEnvironment({}), { safePaths: [], unchecked: false });
});

test("PEM text is returned, files are read, bad ones are named", async (context) => {
  const { home } = folders(context);
  const files = openSafeFiles({ home, log: SILENT });
  const pem = "-----BEGIN CERTIFICATE-----\nx\n";
  assert.equal(await files.readPem(pem), pem);
  writeFileSync(join(home, "c.pem"), "text");
  writeFileSync(join(home, "big.pem"), Buffer.alloc(1024 * 1024 + 1));
  assert.equal(await files.readPem("c.pem"), "text");
  await assert.rejects(files.readPem("none.pem"), /none\.pem/);
  await assert.rejects(files.readPem("big.pem"), /larger than 1 MiB/);
  await assert.rejects(files.readPem("../x"), ConfigError);
});

test("a watched file tells its new text, also after an atomic replace and for a file that was not there", async (context) => {
  const { home } = folders(context);
  const files = openSafeFiles({ home, log: SILENT });
  const seen: string[] = [];
  let noticed = Promise.withResolvers<void>();
  const path = join(home, "c.pem");
  using watched = files.watchPem("c.pem", (text) => {
    seen.push(text);
    noticed.resolve();
  });
  for (const text of ["one", "two", "three"]) {
    noticed = Promise.withResolvers<void>();
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
    await within(noticed.promise);
  }
  noticed = Promise.withResolvers<void>();
  writeFileSync(path, "four");
  await within(noticed.promise);
  assert.deepEqual(seen, ["one", "two", "three", "four"]);
  void watched;
  files.watchPem("-----BEGIN X-----", () => assert.fail("PEM text never changes"))[Symbol.dispose]();
});

/** A file system that tells nothing fails the test instead of holding it. */
async function within(promise: Promise<void>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new Error("no change was told within 10 s")), 10_000);
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
