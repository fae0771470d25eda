import assert from "node:assert/strict";
import { test } from "node:test";
import { Codes, type UsedCode } from "./code-gate.ts";
import { codeOf, commandCredential, stepAt, stepOf } from "./totp.ts";

const KEY = Buffer.from("12345678901234567890");
const MINUTE_MS = 60_000;

test("RFC 4226, appendix D: the first ten codes", () => {
  const codes = "755224 287082 359152 969429 338314 254676 287922 162583 399871 520489".split(" ");
  assert.deepEqual(
    codes.map((_, step) => codeOf(KEY, step)),
    codes,
  );
});

test("RFC 6238, appendix B: the codes of SHA-1, their last six digits", () => {
  const vectors = [
    [59, "94287082"],
    [1_111_111_109, "07081804"],
    [1_111_111_111, "14050471"],
    [1_234_567_890, "89005924"],
    [2_000_000_000, "69279037"],
    [20_000_000_000, "65353130"],
  ] as const;
  for (const [seconds, code] of vectors) {
    assert.equal(codeOf(KEY, stepAt(seconds * 1000)), code.slice(2));
    assert.equal(stepOf(KEY, code.slice(2), seconds * 1000), stepAt(seconds * 1000));
  }
});

/** The gate, its clock, and what it keeps. */
function world(used: UsedCode | null = null) {
  const kept: UsedCode[] = [];
  const warned: string[] = [];
  const at = { ms: 1_785_312_000_000 };
  const codes = new Codes({
    nowMs: () => at.ms,
    keep: async (one) => void kept.push(one),
    warn: (text) => void warned.push(text),
  });
  if (used !== null) codes.recall(used);
  codes.adopt(KEY);
  const take = async (step: number, from = "192.0.2.1") =>
    (await codes.take(codeOf(KEY, stepAt(at.ms) + step), from)).kind;
  return { codes, kept, warned, at, take };
}

test("a code is right within one step, and once; so is none before it, also after a restart", async () => {
  const { take, kept, at } = world();
  assert.deepEqual(
    [
      await take(-2),
      await take(2),
      await take(-1),
      await take(-1),
      await take(0),
      await take(-1),
      await take(0),
    ],
    ["wrong", "wrong", "right", "used", "right", "used", "used"],
  );
  at.ms += 16 * MINUTE_MS;
  assert.equal(await take(1), "right", "a phone that is ahead");
  assert.equal(await take(0), "used");
  const later = world(kept.at(-1));
  later.at.ms = at.ms;
  assert.deepEqual([await later.take(1), await later.take(2)], ["used", "wrong"]);
  later.at.ms += MINUTE_MS;
  assert.equal(await later.take(0), "right");
});

test("another secret has codes of its own: what was used of the one before says nothing", async () => {
  const { take } = world({ secret: "another", step: Number.MAX_SAFE_INTEGER });
  assert.equal(await take(0), "right");
});

test("five wrong codes of one address, ten of all: no code is looked at for a quarter of an hour, the right one neither", async () => {
  const { codes, take, warned, at } = world();
  for (let tried = 0; tried < 5; tried++) assert.equal(await take(9, "192.0.2.1"), "wrong");
  assert.equal(await take(0, "192.0.2.1"), "later");
  assert.equal(await take(0, "192.0.2.2"), "right", "another address");
  at.ms += MINUTE_MS;
  for (let tried = 0; tried < 5; tried++) assert.equal(await take(9, `192.0.2.${tried + 3}`), "wrong");
  assert.deepEqual(await codes.take("000000", "192.0.2.99"), { kind: "later", afterSeconds: 14 * 60 });
  at.ms += 14 * MINUTE_MS;
  assert.equal(await take(0, "192.0.2.1"), "right");
  assert.equal(warned.length, 10);
});

test("sessions from before codes are asked for are no sessions after it; commands have a credential of the file", () => {
  const { codes } = world();
  const credential = commandCredential(KEY, "mark");
  assert.deepEqual(
    [
      codes.opensAsCommand(credential, "mark"),
      codes.opensAsCommand(credential, "other"),
      codes.opensAsCommand("", "mark"),
    ],
    [true, false, false],
  );
  const withCodes = codes.sessionMark("mark");
  codes.adopt(null);
  assert.deepEqual([codes.isOn, codes.sessionMark("mark")], [false, "mark"]);
  assert.notEqual(withCodes, "mark");
  assert.equal(codes.opensAsCommand(credential, "mark"), false);
});
