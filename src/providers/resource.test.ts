import assert from "node:assert/strict";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import { SILENT } from "#core/log.ts";
import type { Fetched } from "./fetch.ts";
import { Resource, type ResourceEnv } from "./resource.ts";
import { readUserInfo } from "./user-info.ts";
import { memoryBook } from "../../test/support/written-book.ts";

const START_MS = 1_700_000_000_000;

interface Bench extends AsyncDisposable {
  readonly resource: Resource;
  /** What is in use. */
  used: string;
  readonly fetches: number[];
  /** By how much the clock has been set since the start. */
  clockSetMs: number;
}

/** A resource whose downloads give what `answers` holds, one after the other; time is the test's. */
function openBench(
  t: TestContext,
  {
    file,
    fileAgeSeconds = 60,
    answers,
    intervalSeconds,
  }: {
    file: string | null;
    fileAgeSeconds?: number;
    answers: (string | null | Error)[];
    intervalSeconds: number;
  },
): Bench {
  const home = mkdtempSync(join(tmpdir(), "weir-resource-"));
  if (file !== null) {
    writeFileSync(join(home, "list"), file);
    const changedAt = START_MS / 1000 - fileAgeSeconds;
    utimesSync(join(home, "list"), changedAt, changedAt);
  }
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: START_MS });
  const fetches: number[] = [];
  const etags = new Map<string, string>();
  const bench = { used: "", fetches, clockSetMs: 0 } as { -readonly [K in keyof Bench]: Bench[K] };
  const prepared = (text: string) => ({ commit: () => void (bench.used = text), abandon: async () => {} });
  const env: ResourceEnv = {
    files: {
      resolve: (path) => join(home, path),
      readPem: () => assert.fail(),
      watchPem: () => assert.fail(),
    },
    log: SILENT,
    nowMs: () => Date.now() + bench.clockSetMs,
    async fetch(): Promise<Fetched> {
      fetches.push((Date.now() - START_MS) / 1000);
      const answer = answers.shift() ?? null;
      if (answer instanceof Error) throw answer;
      return { body: answer === null ? null : Buffer.from(answer), etag: null, userInfo: null };
    },
    prepare: async (bytes) => {
      const text = Buffer.from(bytes).toString();
      if (text === "bad") throw new Error("cannot be used");
      return prepared(text);
    },
    preparePayload: async () => prepared("payload"),
    changeRouting: async (apply) => apply(),
    written: memoryBook(),
    etags: { get: (url) => etags.get(url) ?? null, set: (url, _hash, etag) => void etags.set(url, etag) },
  };
  bench.resource = new Resource(
    { title: "list", type: "http", url: "http://e.example/", path: "list", intervalSeconds, maxBytes: 1000 },
    env,
  );
  bench[Symbol.asyncDispose] = async () => {
    await bench.resource[Symbol.asyncDispose]();
    rmSync(home, { recursive: true });
  };
  return bench;
}

/** Lets time pass in small steps, so that what a timer starts can finish before the next one. */
async function pass(t: TestContext, seconds: number): Promise<void> {
  for (let left = seconds; left > 0; left--) {
    t.mock.timers.tick(1000);
    for (let round = 0; round < 3; round++) await turn();
  }
}

/** Disk work ends in its own time. */
async function settle(bench: Bench, used: string): Promise<void> {
  for (const end = performance.now() + 20_000; bench.used !== used && performance.now() < end;) await turn();
  assert.equal(bench.used, used);
}

test("the interval counts from the age of the file", async (t) => {
  await using bench = openBench(t, { file: "old", answers: ["new"], intervalSeconds: 100 });
  await bench.resource.load();
  assert.equal(bench.used, "old");
  bench.resource.activate();
  await pass(t, 39);
  assert.deepEqual(bench.fetches, []);
  await pass(t, 2);
  assert.deepEqual(bench.fetches, [40], "it was 60 s old");
  await settle(bench, "new");
});

test("a file that is younger than the clock says waits no longer than the interval", async (t) => {
  const year = 365 * 86_400;
  await using bench = openBench(t, {
    file: "old",
    fileAgeSeconds: -year,
    answers: ["new"],
    intervalSeconds: 100,
  });
  await bench.resource.load();
  bench.resource.activate();
  await pass(t, 99);
  assert.deepEqual(bench.fetches, []);
  await pass(t, 2);
  assert.deepEqual(bench.fetches, [100], "a clock was wrong when the file was written, or is now");
  await settle(bench, "new");
});

test("a machine that starts without the time asks soon behind the setting of its clock", async (t) => {
  const day = 86_400;
  await using bench = openBench(t, {
    file: "old",
    fileAgeSeconds: -day,
    answers: ["new"],
    intervalSeconds: day,
  });
  await bench.resource.load();
  bench.resource.activate();
  await pass(t, 30);
  bench.clockSetMs = 3 * day * 1000;
  assert.deepEqual(bench.fetches, []);
  await pass(t, 3600);
  assert.equal(bench.fetches.length, 1, "the file is two days old by then");
  await settle(bench, "new");
});

test("nothing on the disk: the payload until the download, which is tried again after 10, 20, 40 s", async (t) => {
  const failure = new Error("no way");
  await using bench = openBench(t, {
    file: null,
    answers: [failure, "bad", failure, "good"],
    intervalSeconds: 0,
  });
  await bench.resource.load();
  assert.equal(bench.used, "payload");
  bench.resource.activate();
  await pass(t, 75);
  assert.deepEqual(
    bench.fetches,
    [1, 11, 31, 71].map((at) => at - 1 + (bench.fetches[0] as number)),
  );
  await settle(bench, "good");
  await pass(t, 200);
  assert.equal(bench.fetches.length, 4, "an interval of 0 asks no more");
});

test("the same contents again only make the file younger; disposal ends it all", async (t) => {
  const bench = openBench(t, { file: "old", answers: ["old", null], intervalSeconds: 100 });
  await bench.resource.load();
  const before = bench.resource.updatedAtMs as number;
  await bench.resource.update();
  assert.equal(bench.used, "old");
  assert.ok((bench.resource.updatedAtMs as number) > before);
  await bench[Symbol.asyncDispose]();
  await pass(t, 300);
  assert.equal(bench.fetches.length, 1);
});

test("an update that a reload interrupts says so, wherever it was", async (t) => {
  for (const answers of [["new"], [new Error("the download was given up")], [null]]) {
    const bench = openBench(t, { file: "old", answers, intervalSeconds: 0 });
    await bench.resource.load();
    const update = assert.rejects(bench.resource.update(), {
      message: "list: a reload or the end of the program interrupted the update; nothing of it is in use",
    });
    await Promise.all([bench[Symbol.asyncDispose](), update]);
    assert.equal(bench.used, "old");
    t.mock.timers.reset();
  }
});

test("subscription-userinfo", () => {
  assert.deepEqual(readUserInfo("upload=1; download=2.5;total=30; expire=4"), {
    uploadBytes: 1,
    downloadBytes: 2,
    totalBytes: 30,
    expiresAtUnixSeconds: 4,
  });
  assert.deepEqual(readUserInfo("total=5")?.uploadBytes, 0);
  assert.equal(readUserInfo("<script>"), null);
});
