import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { acceptRollback, MARK_SUFFIX, rollbackOf } from "#store/high-mark.ts";

class Place implements Disposable {
  readonly home = mkdtempSync(join(tmpdir(), "weir-mark-"));
  readonly path = join(this.home, "s.db");
  errors: string[] = [];

  open(): Store {
    const error = (text: string | (() => string)) =>
      void this.errors.push(typeof text === "string" ? text : text());
    const log = { ...SILENT, error };
    return Store.open({ path: this.path, parts: ["users"], isMarked: true, nowMs: () => 5_000, log });
  }

  /** Every file but the mark, as a snapshot has them. */
  copy(from: string, to: string): void {
    for (const name of readdirSync(from))
      if (name.startsWith("s.db") && !name.endsWith(MARK_SUFFIX))
        copyFileSync(join(from, name), join(to, name));
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true });
  }
}

const change = (text: string) => [{ part: "users", key: "k", value: Buffer.from(text) }];

test("both files older together: said at each start, also after further changes, until it is accepted", () => {
  using place = new Place();
  const snapshot = mkdtempSync(join(place.home, "snapshot-"));
  {
    using store = place.open();
    store.commit(change("one"), { backup: true });
  }
  place.copy(place.home, snapshot);
  {
    using store = place.open();
    for (const text of ["two", "three"]) store.commit(change(text), { backup: true });
    assert.throws(() => acceptRollback(place.path), /in use/);
  }
  assert.deepEqual([place.errors, rollbackOf(place.path)], [[], null]);
  place.copy(snapshot, place.home);
  const rollback = { seenGeneration: 3, foundGeneration: 1, sinceMs: 5_000 };
  {
    using store = place.open();
    assert.match(
      place.errors.join(),
      /STATE HAS GONE BACK: generation 3 was acknowledged, both files are at 1/,
    );
    for (const text of ["2", "3", "4"]) store.commit(change(text), { backup: true });
  }
  place.errors = [];
  place.open()[Symbol.dispose]();
  assert.match(place.errors.join(), /was not accepted yet/);
  assert.deepEqual(rollbackOf(place.path), rollback);
  acceptRollback(place.path);
  place.errors = [];
  place.open()[Symbol.dispose]();
  assert.deepEqual([place.errors, rollbackOf(place.path)], [[], null]);
});

test("one file that is lost is no way back: what only the primary had is not marked", () => {
  using place = new Place();
  {
    using store = place.open();
    store.commit(change("acknowledged"), { backup: true });
    store.commit(change("counters"), { backup: false });
  }
  rmSync(place.path);
  place.open()[Symbol.dispose]();
  assert.deepEqual([place.errors, rollbackOf(place.path)], [[], null]);
});

test("a mark that is cut off or has other bytes says nothing; a file of another kind at its name is left alone", () => {
  using place = new Place();
  place.open()[Symbol.dispose]();
  for (const bytes of ["", "weir-seen ", `weir-seen 00000000[9,null]${" ".repeat(80)}`]) {
    writeFileSync(place.path + MARK_SUFFIX, bytes);
    place.open()[Symbol.dispose]();
    assert.deepEqual([place.errors, rollbackOf(place.path)], [[], null]);
  }
  writeFileSync(place.path + MARK_SUFFIX, "a letter");
  assert.throws(() => place.open(), /no file of a store/);
});
