/** A program with a store and a cache of choices on /mnt, a small disk, which is full when they are opened anew. */
import { appendFileSync, rmSync, writeFileSync } from "node:fs";
import { messageOf } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import type { OpenedStore } from "#store/opened-store.ts";
import { ProfileCache } from "#store/profile-cache.ts";
import { openSupervisedStore } from "#store/supervised-store.ts";

const CACHE = "/mnt/weir-cache.db";
const FILL = "/mnt/fill";
const OPTIONS = { path: "/mnt/x.db", parts: ["a"], isMarked: true, nowMs: Date.now, log: SILENT };
let nowMs = 0;

function fill(): void {
  writeFileSync(FILL, "");
  try {
    for (;;) appendFileSync(FILL, Buffer.alloc(4096));
  } catch {
    // it is full
  }
}

async function put({ store }: OpenedStore, text: string): Promise<string> {
  const changes = [{ part: "a", key: "k", value: Buffer.from(text) }];
  return store.commit(changes, { backup: true }).then(() => "written", messageOf);
}

const textIn = ({ records }: OpenedStore): string => String(records.get("a")?.[0]?.[1]);
const openCache = (): ProfileCache => new ProfileCache(CACHE, SILENT, () => nowMs);

{
  const first = await openSupervisedStore(OPTIONS);
  await put(first, "old");
  await first.store.close();
  using cache = openCache();
  cache.select("group", "old");
}
fill();
{
  const opened = await openSupervisedStore(OPTIONS);
  using cache = openCache();
  console.log(textIn(opened), cache.selected("group"));
  fill(); // the opening has given some room back
  cache.select("group", "new");
  console.log(await openSupervisedStore(OPTIONS).then(textIn, messageOf));
  console.log(await put(opened, "new"));
  rmSync(FILL);
  nowMs = 100_000;
  cache.select("other", "new");
  console.log(await put(opened, "new"));
  await opened.store.close();
}
{
  const idle = await openSupervisedStore(OPTIONS);
  fill();
  console.log(await idle.store.close().then(() => "closed", messageOf));
  rmSync(FILL);
}
{
  const last = await openSupervisedStore(OPTIONS);
  using cache = openCache();
  console.log(textIn(last), cache.selected("group"), cache.selected("other"));
  await last.store.close();
}
