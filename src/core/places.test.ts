import assert from "node:assert/strict";
import { test } from "node:test";
import { withoutFolders } from "./places.ts";

test("a client reads names of files and no folders, also with blanks in them and for other files", () => {
  const rows = [
    ["/var/lib/weir/users.db: cannot write: disk is full", "users.db: cannot write: disk is full"],
    ["EROFS: read-only, open '/var/lib/weir/users.db-wal'", "EROFS: read-only, open 'users.db-wal'"],
    ["ENOENT: mkdir '/srv/my files/x'", "ENOENT: mkdir 'x'"],
    ["/srv/other/place: others can write to it", "place: others can write to it"],
    [
      "6 of 7 and/or 3/4 records, https://example.org/a/b",
      "6 of 7 and/or 3/4 records, https://example.org/a/b",
    ],
  ] as const;
  for (const [message, wanted] of rows)
    assert.equal(withoutFolders(message, "/var/lib/weir/users.db"), wanted);
  assert.equal(withoutFolders("/home/my user/a.db: full", "/home/my user/a.db"), "a.db: full");
});
