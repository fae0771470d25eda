/** Backups by the clock: when they are due, which stay, what a fault costs. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { TimedBackups, type TimedBackupSettings } from "#app/timed-backups.ts";
import { openAge, readIdentities } from "#backup/age.ts";
import { decodeContents, encodeContents } from "#backup/contents.ts";
import { openBackup, sealBackup } from "#backup/sealing.ts";
import { SILENT } from "#core/log.ts";
import { ManagedCore, stateFolder } from "../support/managed-core.ts";
import { until } from "../support/until.ts";

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const CONTENTS = { version: "1", configuration: null, stores: [], choices: { selected: {}, storage: {} } };

test("one is made when it is due, the newest stay, and nothing else in the folder is touched", async () => {
  using state = stateFolder();
  const folder = join(state.path, "backups");
  const passphraseFile = join(state.path, "passphrase");
  writeFileSync(passphraseFile, "correct horse\n");
  let settings: TimedBackupSettings | null = {
    folder,
    everyMs: DAY_MS,
    keep: 3,
    passphraseFile,
    recipients: [],
  };
  let fails = false;
  const errors: unknown[] = [];
  using backups = new TimedBackups({
    settings: () => settings,
    log: { ...SILENT, error: (text) => void errors.push(text) },
    backup: {
      async make() {
        if (fails) throw new Error("the store is not open");
        return sealBackup(encodeContents({ ...CONTENTS, createdAtMs: START_MS }), null);
      },
    },
  });
  await backups.look(START_MS);
  await backups.look(START_MS + DAY_MS - 1000);
  assert.deepEqual(readdirSync(folder), ["weir-20260102T030405Z.backup"]);
  const path = join(folder, "weir-20260102T030405Z.backup");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(decodeContents(await openBackup(readFileSync(path), "correct horse")).createdAtMs, START_MS);

  writeFileSync(join(folder, "weir-20250102T030405Z.backup"), "my notes");
  writeFileSync(join(folder, "other.txt"), "other");
  for (let day = 1; day <= 4; day++) await backups.look(START_MS + day * DAY_MS);
  assert.deepEqual(readdirSync(folder).sort(), [
    "other.txt",
    "weir-20250102T030405Z.backup", // no backup, whatever it is called
    "weir-20260104T030405Z.backup",
    "weir-20260105T030405Z.backup",
    "weir-20260106T030405Z.backup",
  ]);

  fails = true;
  await backups.look(START_MS + 6 * DAY_MS);
  await backups.look(START_MS + 7 * DAY_MS);
  assert.equal(errors.length, 1);
  assert.match(String(errors[0]), /none could be made: the store is not open/);
  assert.equal(readdirSync(folder).length, 5);
  settings = null;
  await backups.look(START_MS + 9 * DAY_MS);
});

test("one from a clock that was ahead neither hurries the others nor drives them out", async () => {
  using state = stateFolder();
  const folder = join(state.path, "backups");
  let made = 0;
  using backups = new TimedBackups({
    settings: () => ({ folder, everyMs: DAY_MS, keep: 3, passphraseFile: null, recipients: [] }),
    log: SILENT,
    backup: {
      make() {
        made++;
        return sealBackup(encodeContents({ ...CONTENTS, createdAtMs: START_MS }), null);
      },
    },
  });
  for (let day = 0; day < 3; day++) await backups.look(START_MS + day * DAY_MS);
  const wrongMs = START_MS + 400 * DAY_MS;
  for (let day = 0; day < 3; day++) await backups.look(wrongMs + day * DAY_MS); // all that is kept is of this clock
  made = 0;
  for (let hour = 0; hour < 48; hour++) await backups.look(START_MS + 3 * DAY_MS + hour * 3_600_000);
  assert.equal(made, 2);
  assert.deepEqual(readdirSync(folder).sort(), [
    "weir-20260105T030405Z.backup",
    "weir-20260106T030405Z.backup",
    "weir-20270208T030405Z.backup",
  ]);
});

test("for recipients of age: only their keys open them, and the oldest go, too", async () => {
  using state = stateFolder();
  const folder = join(state.path, "backups");
  // A pair as age-keygen made it.
  const recipients = ["age1d67nr5u8m0tgnfql52vuetlh9etdvxe0hufe2lvv9c0uh4ueufdqr9s05w"];
  const [key = Buffer.alloc(0)] =
    readIdentities("AGE-SECRET-KEY-1R00Z0H4W6DKHZEPWUWD3YFR5V7JYKYE8LV7RHGE4UWVATVYG9C4SK55YQ7") ?? [];
  using backups = new TimedBackups({
    settings: () => ({ folder, everyMs: DAY_MS, keep: 2, passphraseFile: null, recipients }),
    log: SILENT,
    backup: { make: () => sealBackup(encodeContents({ ...CONTENTS, createdAtMs: START_MS }), null) },
  });
  for (let day = 0; day <= 3; day++) await backups.look(START_MS + day * DAY_MS);
  const names = readdirSync(folder).sort();
  assert.deepEqual(names, ["weir-20260104T030405Z.backup", "weir-20260105T030405Z.backup"]);
  const file = readFileSync(join(folder, names[0] ?? ""));
  await assert.rejects(openBackup(file, null), /it is no backup of weir/);
  assert.equal(decodeContents(await openBackup(openAge(file, [key]), null)).createdAtMs, START_MS);
});

test("a start with svc.backup makes one", async () => {
  await using core = await ManagedCore.start({ svc: "backup: { folder: backups }\n" });
  const folder = join(core.core.home, "backups");
  await until("a backup is there", () => /backup: \S*weir-/.test(core.core.output()));
  const [name = ""] = readdirSync(folder).filter((each) => each.endsWith(".backup"));
  const contents = decodeContents(await openBackup(readFileSync(join(folder, name)), null));
  assert.equal(contents.configuration, core.configText);
  assert.deepEqual(
    contents.stores.map(({ role }) => role),
    ["users", "journal"],
  );
});
