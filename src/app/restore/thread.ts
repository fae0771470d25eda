/** The program of the thread that reads a backup, checks it whole, and lays it beside the state. */
import { createHash } from "node:crypto";
import type { BackedUpStore, BackupContents, StoreRole } from "#backup/contents.ts";
import { keysFor, readBackup } from "#backup/read.ts";
import { refuseStrangeTables } from "#backup/restore.ts";
import { stageRestore } from "#backup/stage.ts";
import { ConfigError } from "#core/errors.ts";
import { answerEach } from "#documents/answer.ts";
import { STORE_PARTS } from "#host/store-parts.ts";
import { itemAt } from "#lib/at.ts";
import { TOKENS } from "#journal/parts.ts";
import { decodeState, LISTENERS, USERS } from "#users/records.ts";
import type { Named, RestoreReply, RestoreRequest } from "./messages.ts";

/** Of its contents; more is restored by the command, on a machine that has the room. */
const MOST_BYTES = 512 * 1024 * 1024;

void answerEach<RestoreRequest, RestoreReply>(
  async ({ file, key, stage }) => {
    const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
    const sum = createHash("sha256").update(bytes).digest("hex");
    const contents = await readBackup(bytes, keysFor(bytes, key), MOST_BYTES);
    const reply = { ...foundIn(contents), sum };
    if (stage === null) return reply;
    if (stage.sum !== sum) throw new ConfigError("it is another file than the one that was looked at");
    const stores = contents.stores.map((store, at) => ({
      path: itemAt(stage.paths, at),
      store,
      parts: STORE_PARTS[store.role],
    }));
    stageRestore(contents, { ...stage, stores }, Date.now);
    return reply;
  },
  () => [],
);

/** Throws `ConfigError` for tables of a later version, `StoreError` where the records of users contradict each other. */
function foundIn(contents: BackupContents): Omit<RestoreReply, "sum"> {
  const { createdAtMs, version, configuration, stores, choices } = contents;
  for (const store of stores) refuseStrangeTables(store, STORE_PARTS[store.role]);
  const { books } = decodeState(recordsOf(stores, "users", LISTENERS), recordsOf(stores, "users", USERS));
  return {
    createdAtMs,
    version,
    configuration,
    stores: stores.map(({ role, path, parts }) => ({
      role,
      path,
      counts: Object.fromEntries(parts.map(({ name, records }) => [name, records.length])),
    })),
    users: [...books.values()].flatMap(({ listener, users }) =>
      [...users.values()].map(({ id, name }) => ({ id, name, listener })),
    ),
    tokens: recordsOf(stores, "journal", TOKENS).map(tokenOf),
    choices: Object.keys(choices.selected).length,
  };
}

function recordsOf(
  stores: readonly BackedUpStore[],
  role: StoreRole,
  part: string,
): readonly (readonly [key: string, value: Buffer])[] {
  const found = stores.find((store) => store.role === role)?.parts.find(({ name }) => name === part);
  return (found?.records ?? []).map(([key, value]) => [key, Buffer.from(value)]);
}

function tokenOf([id, value]: readonly [string, Buffer]): Named {
  const { name }: { readonly name?: unknown } = JSON.parse(value.toString());
  return { id, name: String(name) };
}
