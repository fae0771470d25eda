import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { zstdDecompressSync } from "node:zlib";
import { ProtocolError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { readBoltBucket } from "./bolt-file.ts";
import { foreignSelections } from "./foreign-choices.ts";
import { ProfileCache } from "./profile-cache.ts";

/** Made by bbolt itself: bucket selected with two choices, bucket fakeip with one. */
const MADE = zstdDecompressSync(
  Buffer.from(
    "KLUv/WAAfw0IAMKIICtwixoDvGPqV9VVvABRVSj6QUhia3qmUrb9ivYkJCgQ6xfaaRB/IPE32TsFU+EBRDQuxkccS484lg5rs47rPk5k+qua7XdZbTereRsG7gKrF0D/4K/Uy6wGw/yWX/BXINY/aaXST9HE5KoooYQwK5WeotHWURge3H9gwNQ/JacQef04IFCDBEmK2gZFUHs+FBRa76F7BY3Wh4cN8CAfDIC5m37kGxeP+SAr/NCEm58cwCTAB3AgwINoOBEgAybgFtcLWBBmnBj/TgumEPr74zLQWu+jOy/cdeyZY13Rep4d64R71vEANGTrT8IBQ+8Hz/60EOOBnMQScL2Bh4IF",
    "base64",
  ),
);
const CHOICES = [
  ["Auto", "node 1"],
  ["🇯🇵/50%", "x#y"],
];

test("a bucket that bbolt has written, and none where there is none", () => {
  assert.deepEqual([...readBoltBucket(MADE, "selected")], CHOICES);
  assert.deepEqual([...readBoltBucket(MADE, "subscriptioninfo")], []);
});

test("damage and truncation are a ProtocolError, or leave what can be read", () => {
  const attempt = (bytes: Buffer): void => {
    try {
      readBoltBucket(bytes, "selected");
    } catch (error) {
      assert.ok(error instanceof ProtocolError, String(error));
    }
  };
  for (let length = 0; length < MADE.length; length += 61) attempt(MADE.subarray(0, length));
  const written = [...MADE.keys()].filter((at) => MADE[at] !== 0);
  for (const at of written)
    for (const change of [1, 0x40, 0xff]) {
      const damaged = Buffer.from(MADE);
      damaged[at] = (damaged[at] as number) ^ change;
      attempt(damaged);
    }
});

test("choices of another program are taken over once, and its file is only read", () => {
  const home = mkdtempSync(join(tmpdir(), "weir-choices-"));
  try {
    const foreign = join(home, "cache.db");
    writeFileSync(foreign, MADE);
    const open = () => {
      const cache = new ProfileCache(join(home, "weir-cache.db"), SILENT);
      cache.adopt(foreignSelections(foreign, SILENT));
      return cache;
    };
    {
      using cache = open();
      assert.equal(cache.selected("Auto"), "node 1");
      cache.select("Auto", "node 2");
    }
    using cache = open();
    assert.equal(cache.selected("Auto"), "node 2", "its own choice counts from then on");
    assert.equal(cache.selected("🇯🇵/50%"), "x#y");
    assert.deepEqual(readFileSync(foreign), MADE);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
