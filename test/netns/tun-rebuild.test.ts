/** A TUN whose device somebody deletes: what changes while it is made anew. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openNetns, skipNetns } from "../support/netns.ts";
import { talkTo } from "../support/netns-row.ts";

const SETS = fileURLToPath(new URL("../support/netns-tun-sets.ts", import.meta.url));
const skip = skipNetns("a TUN that is made anew");

test(
  "route sets that change while the capture is opened again are in force behind it",
  { skip },
  async () => {
    await using router = await openNetns("tunanew");
    await using undo = new AsyncDisposableStack();
    const node = [process.execPath, "--disable-warning=ExperimentalWarning"];
    const tun = talkTo(router, [...node, SETS, "weir-tun0"], undo);
    assert.equal(await tun.hear(), "opened 0");
    await router.ip("link del weir-tun0");
    assert.deepEqual([await tun.hear(), await tun.hear()], ["opened 0", "updated 1"]);
  },
);
