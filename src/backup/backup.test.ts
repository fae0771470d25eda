import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { skipLarge } from "../../test/support/runs.ts";
import { decodeContents, encodeContents, type BackupContents } from "./contents.ts";
import { finishRestore } from "./put-in-force.ts";
import { BackupError, openBackup, sealBackup } from "./sealing.ts";

const CONTENTS: BackupContents = {
  createdAtMs: 1_750_000_000_000,
  version: "1.2.3",
  configuration: "mixed-port: 7890 # ü\n",
  stores: [
    {
      role: "users",
      path: "users.db",
      parts: [
        { name: "users", records: [["a", randomBytes(3000)], ["b", Buffer.alloc(0)]] }, // prettier-ignore
        { name: "listeners", records: [] },
      ],
    },
  ],
  choices: { selected: { group: "node" }, storage: {} },
};
/** Keys of passphrases are made slow to guess. */
const skipSlow = { skip: skipLarge };
const plain = (contents: BackupContents) => JSON.stringify(contents, (_, value: unknown) => value);

test("what goes into a backup comes out of it", async () => {
  const file = await sealBackup(encodeContents(CONTENTS), null);
  assert.equal(plain(decodeContents(await openBackup(file, null))), plain(CONTENTS));
});

test("what goes into an encrypted backup comes out of it, and does not stand in it", skipSlow, async () => {
  const file = await sealBackup(encodeContents(CONTENTS), "correct horse");
  assert.equal(plain(decodeContents(await openBackup(file, "correct horse"))), plain(CONTENTS));
  assert.ok(!file.includes("mixed-port"));
});

test("another passphrase, or none, opens nothing", skipSlow, async () => {
  const file = await sealBackup(encodeContents(CONTENTS), "correct horse");
  await assert.rejects(openBackup(file, null), /it is encrypted; it takes its passphrase/);
  await assert.rejects(openBackup(file, "incorrect horse"), /the passphrase is not the one/);
});

test("a backup that was cut anywhere, or has one changed byte, is refused with what is wrong", async () => {
  const file = await sealBackup(encodeContents(CONTENTS), null);
  for (let length = 0; length < file.length; length += 7)
    await assert.rejects(openBackup(file.subarray(0, length), null), BackupError);
  await assert.rejects(openBackup(file.subarray(0, -1), null), /cut off: \d+ of \d+ bytes are there/);
  for (let at = 0; at < file.length; at += 5) {
    const changed = Buffer.from(file);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    await assert.rejects(openBackup(changed, null), BackupError, `byte ${at}`);
  }
  await assert.rejects(openBackup(Buffer.concat([file, Buffer.from("x")]), null), BackupError);
  await assert.rejects(openBackup(Buffer.from("PK\u0003\u0004"), null), /no backup of weir/);
});

test("contents that contradict their list are refused, also where every checksum is right", async () => {
  const contents = encodeContents(CONTENTS);
  for (const wrong of [contents.subarray(0, -1), Buffer.concat([contents, Buffer.from("x")])])
    assert.throws(() => decodeContents(wrong), BackupError);
  const lies = Buffer.from(contents);
  lies.writeUInt32BE(0xffffffff);
  assert.throws(() => decodeContents(lies), BackupError);
});

test("a restore whose plan is damaged says what to look at, in whichever state it is", async () => {
  const home = mkdtempSync(join(tmpdir(), "weir-plan-"));
  const unused = {
    prepare: () => assert.fail(),
    choices: join(home, "choices"),
    writeChoices: () => assert.fail(),
  };
  for (const state of ["staged", "applied", "back", "emptied"])
    for (const text of [null, "", '{"by":', "{}"]) {
      const folder = join(home, `restore.${state}`);
      mkdirSync(folder);
      if (text !== null) writeFileSync(join(folder, "plan.json"), text);
      await assert.rejects(
        finishRestore(home, unused),
        (error: Error) =>
          error.message.includes(`plan.json: the plan of a restore is missing or damaged`) &&
          error.message.endsWith(`then move ${folder} away`),
      );
      rmSync(folder, { recursive: true });
    }
  rmSync(home, { recursive: true });
});
