/** A TUN whose device another program deletes: what changes while it is made anew, and what does not when it ends anyway. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openNetns, skipNetns } from "../support/netns.ts";
import { talkTo } from "../support/netns-row.ts";

const ANEW = fileURLToPath(new URL("../support/netns-tun-anew.ts", import.meta.url));
const skip = skipNetns("a TUN that is made anew");
const anew = (scenario: string) => [
  process.execPath,
  "--disable-warning=ExperimentalWarning",
  ANEW,
  "weir-tun0",
  scenario,
];

test(
  "route sets that change while the capture is opened again are in force behind it",
  { skip },
  async () => {
    await using router = await openNetns("tunanew");
    await using undo = new AsyncDisposableStack();
    const tun = talkTo(router, anew("sets"), undo);
    assert.equal(await tun.nextLine(), "opened 0");
    await router.ip("link del weir-tun0");
    assert.deepEqual([await tun.nextLine(), await tun.nextLine()], ["opened 0", "updated 1"]);
  },
);

test("a device that is deleted while its TUN is closed holds nothing back", { skip }, async () => {
  await using router = await openNetns("tunend");
  assert.equal(await router.run(...anew("closing")), "closed, holding 0\n");
});
