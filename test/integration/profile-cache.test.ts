import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { ProfileCache } from "#store/profile-cache.ts";
import { missing } from "../support/peer.ts";

const ROOT = join(import.meta.dirname, "../..");

function inFolder(work: (path: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "weir-cache-"));
  try {
    work(join(folder, "home", "cache.db"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("choices survive a restart; the file is made at the first write", () =>
  inFolder((path) => {
    const first = new ProfileCache(path, SILENT);
    assert.equal(first.selected("Auto"), null);
    assert.ok(!existsSync(path));
    first.select("Auto", "node 1");
    first.select("🇯🇵/50%", "x#y");
    first[Symbol.dispose]();
    using second = new ProfileCache(path, SILENT);
    assert.equal(second.selected("Auto"), "node 1");
    assert.equal(second.selected("🇯🇵/50%"), "x#y");
  }));

test("a file of others is left as it is, an unusable path costs only persistence", () =>
  inFolder((path) => {
    const strange = join(path, "..", "..", "strange.db");
    const warnings: string[] = [];
    const log = { ...SILENT, warning: (text: unknown) => void warnings.push(String(text)) };
    for (const bytes of ["notes of another program", Buffer.alloc(9000, 0xff), ""]) {
      writeFileSync(strange, bytes);
      const before = statSync(strange);
      using cache = new ProfileCache(strange, log);
      cache.set("storage", "a", "1");
      assert.equal(cache.get("storage", "a"), "1");
      assert.deepEqual(readFileSync(strange), Buffer.from(bytes));
      assert.deepEqual([statSync(strange).ino, statSync(strange).mtimeMs], [before.ino, before.mtimeMs]);
    }
    assert.match(warnings.join("\n"), /left as it is/);

    using unusable = new ProfileCache("/dev/null/cache.db", log);
    unusable.set("storage", "a", "2");
    assert.equal(unusable.get("storage", "a"), "2");
    assert.match(warnings.at(-1) ?? "", /kept in memory/);
  }));

test("a file that is damaged inside is made anew, at the start or with the next write", () =>
  inFolder((path) => {
    const fill = () => {
      using cache = new ProfileCache(path, SILENT);
      cache.setAll(
        "storage",
        Array.from({ length: 2000 }, (_, at) => [`key ${at}`, "value".repeat(20)] as const),
      );
    };
    const damage = () => {
      const descriptor = openSync(path, "r+");
      for (let page = 1; page < 20; page++)
        writeSync(descriptor, Buffer.alloc(200, 0xff), 0, 200, page * 4096);
      closeSync(descriptor);
    };
    fill();
    damage();
    {
      using cache = new ProfileCache(path, SILENT);
      cache.set("storage", "a", "1");
    }
    {
      using cache = new ProfileCache(path, SILENT);
      assert.deepEqual([...cache.entries("storage")], [["a", "1"]]);
    }
    fill();
    {
      using cache = new ProfileCache(path, SILENT);
      damage();
      for (let at = 0; at < 2000; at += 100) cache.delete("storage", `key ${at}`);
      cache.set("storage", "b", "2");
    }
    using cache = new ProfileCache(path, SILENT);
    assert.equal(cache.get("storage", "b"), "2");
    assert.equal(cache.count("storage"), 2002 - 20);
  }));

test("what could not be written goes with a later write, or with the last one", () =>
  inFolder((path) => {
    let nowMs = 0;
    const warnings: string[] = [];
    const log = { ...SILENT, warning: (text: unknown) => void warnings.push(String(text)) };
    const known = () => {
      using cache = new ProfileCache(path, SILENT);
      return Object.fromEntries(cache.entries("storage"));
    };
    const folder = join(path, "..");
    writeFileSync(folder, "in the way");
    {
      using cache = new ProfileCache(path, log, () => nowMs);
      cache.set("storage", "a", "1");
      cache.set("storage", "b", "2");
      rmSync(folder);
      cache.delete("storage", "b");
      assert.ok(!existsSync(path), "it is not tried again at once");
      nowMs += 60_000;
      cache.set("storage", "c", "3");
      assert.deepEqual(known(), { a: "1", c: "3" });
      rmSync(folder, { recursive: true });
    }
    {
      writeFileSync(folder, "in the way");
      using cache = new ProfileCache(path, log, () => nowMs);
      cache.set("storage", "d", "4");
      rmSync(folder);
    }
    assert.deepEqual(known(), { d: "4" });
    assert.equal(warnings.length, 2, warnings.join("\n"));
  }));

test("a full disk leaves no file that cannot be used when there is room again", () =>
  inFolder((path) => {
    const work = `
      import { SILENT } from "#core/log.ts";
      import { ProfileCache } from "#store/profile-cache.ts";
      using cache = new ProfileCache(${JSON.stringify(path)}, { ...SILENT, warning: (text) => console.log(text) });
      cache.set("storage", "a", "1");
    `;
    const noRoom = `ulimit -f 0 && trap "" XFSZ && exec "$0" --input-type=module -e "$1" 2>&1 | cat`;
    const said = execFileSync("sh", ["-c", noRoom, process.execPath, work], {
      encoding: "utf8",
      cwd: import.meta.dirname,
    });
    assert.match(said, /choices are kept in memory until it can be/);
    new ProfileCache(path, SILENT).set("storage", "b", "2");
    assert.equal(new ProfileCache(path, SILENT).get("storage", "b"), "2");
  }));

test("killed in the first write, it leaves no file that cannot be used", { skip: missing("strace") }, () =>
  inFolder((path) => {
    const program = `import { ProfileCache } from "#store/profile-cache.ts";
      import { SILENT } from "#core/log.ts";
      using cache = new ProfileCache(process.env.FILE, SILENT);
      cache.select("group", "killed");`;
    for (const [call, when] of ["pwrite64", "fsync,fdatasync", "unlink", "rename"].flatMap((name) =>
      [1, 2].map((nth) => [name, nth] as const),
    )) {
      const inject = `inject=${call}:signal=SIGKILL:when=${when}`;
      const words = ["-f", "-o", "/dev/null", "-e", `trace=${call}`, "-e", inject, process.execPath];
      spawnSync("strace", [...words, "--input-type=module", "-e", program], { cwd: ROOT, env: { ...process.env, FILE: path } }); // prettier-ignore
      {
        using next = new ProfileCache(path, SILENT);
        next.select("group", "member");
      }
      using again = new ProfileCache(path, SILENT);
      assert.equal(again.selected("group"), "member", `${call} ${when}`);
      rmSync(dirname(path), { recursive: true });
    }
  }),
);

test("while another process has the file a choice is refused, not forgotten", () =>
  inFolder((path) => {
    using cache = new ProfileCache(path, SILENT);
    cache.release();
    assert.throws(() => cache.demand(), { status: 503 });
    cache.reclaim();
    cache.demand();
  }));
