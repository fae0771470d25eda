/** Restores into /mnt/home on a small disk that is nearly full; says what came of it, and what is there. */
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { encodeContents } from "#backup/contents.ts";
import { giveUp } from "#backup/put-in-force.ts";
import { fillStore } from "#backup/restore.ts";
import { sealBackup } from "#backup/sealing.ts";
import { stageRestore } from "#backup/stage.ts";
import { restoreCommand } from "#cli/restore.ts";
import { restoreAtStart } from "#cli/staged-restore.ts";
import { messageOf } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { STORE_PARTS } from "#host/store-parts.ts";
import { Store } from "#store/backup.ts";

const HOME = "/mnt/home";
const FILE = `${HOME}/config.yaml`;
const FILL = "/mnt/fill";
const ROLES = ["journal", "users"] as const;

/** Leaves so many bytes. */
function fill(leftBytes: number): void {
  const left = "/mnt/left";
  writeFileSync(left, Buffer.alloc(leftBytes));
  try {
    for (;;) appendFileSync(FILL, Buffer.alloc(4096));
  } catch {
    rmSync(left);
  }
}

function targets(text: string, sizeBytes: number) {
  return ROLES.map((role) => {
    const [first] = STORE_PARTS[role];
    const value = Buffer.concat([Buffer.from(`${text} `), randomBytes(role === "users" ? sizeBytes : 0)]);
    const store = { role, path: `${role}.db`, parts: [{ name: first, records: [["a", value] as const] }] };
    return { path: `${HOME}/${role}.db`, store, parts: STORE_PARTS[role] };
  });
}

function state(): string {
  const texts = ROLES.map((role) => {
    using store = Store.open({
      path: `${HOME}/${role}.db`,
      parts: STORE_PARTS[role],
      nowMs: Date.now,
      log: SILENT,
    });
    return [...store.entries(STORE_PARTS[role][0])].map(([, value]) => value.toString().split(" ")[0]).join();
  });
  return [...texts, readFileSync(FILE, "utf8")].join(" ");
}

function contentsOf(text: string, sizeBytes: number) {
  const stores = targets(text, sizeBytes).map(({ store }) => store);
  const choices = { selected: {}, storage: {} };
  return { createdAtMs: 0, version: "1", configuration: text, stores, choices };
}

mkdirSync(HOME, { mode: 0o700 });
writeFileSync(FILE, "old");
for (const target of targets("old", 0)) fillStore(target, SILENT, Date.now);
const backup = "/mnt/backup";
writeFileSync(backup, await sealBackup(encodeContents(contentsOf("new", 200_000)), null));
fill(400_000);
const said = await restoreCommand(["-d", HOME, "-replace", backup], {}).then(String, messageOf);
console.log(said.replace(/:.*/, ""));
console.log(
  readdirSync(HOME)
    .filter((name) => /before|-wal|tmp/.test(name))
    .join() || "nothing is left",
);
rmSync(FILL);
console.log(state());

const by = { kind: "owner", name: "controller" } as const;
stageRestore(
  contentsOf("new", 0),
  { home: HOME, file: FILE, stores: targets("new", 0), by, from: "" },
  Date.now,
);
console.log((await restoreAtStart(HOME, SILENT))?.kind);
fill(0);
console.log(giveUp(HOME, "a full disk"));
rmSync(FILL);
console.log((await restoreAtStart(HOME, SILENT))?.kind, state());
