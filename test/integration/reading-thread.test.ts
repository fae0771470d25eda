/** How long a thread that reads documents stays: by its name among the threads of this process, so on Linux alone. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Slices } from "#core/slices.ts";
import { sendBytes } from "#documents/bytes.ts";
import type { ListReply, ListRequest } from "#documents/messages.ts";
import { ReadingThread } from "#documents/thread.ts";
import { until } from "../support/until.ts";

const PROGRAM = {
  from: new URL("../../src/documents/reader.ts", import.meta.url).href,
  source: "list-worker.ts",
  built: "list-thread",
};
const BOUNDS = { mostMs: 60_000, mostHeapMiB: 512 };
const skip = process.platform !== "linux";

const openReader = (keptMs?: number): ReadingThread =>
  new ReadingThread(PROGRAM, {
    what: "reading it",
    bounds: BOUNDS,
    ...(keptMs === undefined ? {} : { keptMs }),
  });

function readWith(thread: ReadingThread, text: string): Promise<ListReply> {
  const bytes = Buffer.from(text);
  const request: ListRequest = { length: bytes.length, kind: { behavior: "classical", format: "text" } };
  return thread.ask<ListReply>(request, { send: (worker) => sendBytes(worker, bytes, new Slices()) });
}

/** Kernel numbers of the reading threads that this process has. */
const readers = (): readonly string[] =>
  readdirSync("/proc/self/task").filter((id) => {
    try {
      return readFileSync(`/proc/self/task/${id}/comm`, "utf8") === "document\n";
    } catch {
      return false; // it has ended meanwhile
    }
  });

const none = (): boolean => readers().length === 0;

test(
  "the thread that read one document reads the next; nothing of the first stays in its answer",
  { skip },
  async () => {
    const thread = openReader();
    const first = await readWith(thread, "DOMAIN,a.com\nDOMAIN,b.com\n");
    const ids = readers();
    assert.equal(ids.length, 1);
    assert.deepEqual(await readWith(thread, "DOMAIN,a.com\nDOMAIN,b.com\n"), first);
    assert.notDeepEqual(await readWith(thread, "DOMAIN,c.com\n"), first);
    assert.deepEqual(readers(), ids);
    thread.end();
    await until("the thread has ended", none);
  },
);

test("it ends when no document comes for a while, and the next one has a new thread", { skip }, async () => {
  const thread = openReader(50);
  const first = await readWith(thread, "DOMAIN,a.com\n");
  await until("the thread has ended", none);
  assert.deepEqual(await readWith(thread, "DOMAIN,a.com\n"), first);
  thread.end();
  await until("the thread has ended", none);
});

test("it ends at once behind a fault and behind a document that has made it large", { skip }, async () => {
  const thread = openReader();
  await assert.rejects(readWith(thread, "<html>"), /HTML page/);
  await until("the thread has ended", none, { withinMs: 5_000 });
  await readWith(thread, "DOMAIN,a.com\n".repeat(1_500_000));
  await until("the thread has ended", none, { withinMs: 5_000 });
});
