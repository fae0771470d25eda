import assert from "node:assert/strict";
import { test } from "node:test";
import { openCodeRelease, unwrittenRanges } from "./own-code.ts";

const SMAPS = `00400000-00500000 r--p 00000000 08:02 17 /opt/weir/lib/node
Rss:                 100 kB
Anonymous:             0 kB
00500000-00900000 r-xp 00100000 08:02 17 /opt/weir/lib/node
Anonymous:             0 kB
00900000-00a00000 r--p 00500000 08:02 17 /opt/weir/lib/node
Anonymous:            24 kB
00a00000-00b00000 rw-p 00600000 08:02 17 /opt/weir/lib/node
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 08:02 18 /usr/lib/libc.so.6
Anonymous:             0 kB
7f0000100000-7f0000200000 r-xp 00000000 00:00 0
Anonymous:             0 kB
`;

test("only pages of files that can be read again from them are taken", () => {
  assert.deepEqual(unwrittenRanges(SMAPS), [
    { start: 0x400000n, bytes: 0x100000n },
    { start: 0x500000n, bytes: 0x400000n },
    { start: 0x7f0000000000n, bytes: 0x100000n },
  ]);
});

test("the runtime goes on without its pages", { skip: process.platform !== "linux" }, () => {
  const release = openCodeRelease();
  assert.ok(release !== null);
  release();
  assert.equal(JSON.parse("[1, 2, 3]").length, 3);
});
