/** libnftables waits with `select`, which a descriptor above 1,023 would end the program in. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openNetns, skipNetns } from "../support/netns.ts";

const skip = skipNetns("descriptors", "nft");
const program = join(dirname(fileURLToPath(import.meta.url)), "..", "support", "netns-many-descriptors.ts");

for (const count of [0, 3_000])
  test(`nftables is used while ${count} descriptors more are open`, { skip, timeout: 60_000 }, async () => {
    await using netns = await openNetns("descriptors");
    const node = [process.execPath, "--disable-warning=ExperimentalWarning"];
    assert.equal(
      await netns.run(...node, program, String(count)),
      "a table: table inet weir_test\n" +
        "0 descriptors more after 200 sessions\n" +
        "a socket is closed where it is closed\n",
    );
    assert.equal(await netns.run("nft", "list", "tables"), "", "it went with the program that owned it");
  });
