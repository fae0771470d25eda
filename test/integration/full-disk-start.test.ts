/** weir starts and ends on a disk that is full: what is there is read and in use, and changes go there as soon as there is room. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { tmpfsFault } from "../support/tmpfs.ts";

const CHILD = join(import.meta.dirname, "../support/full-disk.ts");

test(
  "stores and choices are open on a full disk, and written when there is room",
  { skip: tmpfsFault() },
  () => {
    const command = `mount -t tmpfs -o size=1m,mode=700 tmpfs /mnt && exec "$0" --disable-warning=ExperimentalWarning "$1"`;
    const said = execFileSync("unshare", ["-rm", "sh", "-c", command, process.execPath, CHILD], {
      encoding: "utf8",
    });
    assert.deepEqual(said.trim().split("\n"), [
      "old old",
      "/mnt/x.db: in use by another process",
      "/mnt/x.db.bak: cannot write: database or disk is full",
      "written",
      "closed",
      "new new new",
    ]);
  },
);
