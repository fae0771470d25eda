import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { OwnListeners } from "#net/listen/own-listeners.ts";
import { skipLarge } from "../../../test/support/runs.ts";
import { until } from "../../../test/support/until.ts";
import { SelfDials } from "./self-dials.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

test(
  "self dials: the name of a node that dials through another goes with the last node of that name",
  { skip: skipLarge },
  async () => {
    const dials = new SelfDials(new OwnListeners());
    const kept = { name: "kept" };
    dials.chains(kept);
    for (let at = 0; at < 1000; at++) for (const name of [`node ${at}`, "kept"]) dials.chains({ name });
    assert.equal(dials.chained, 1001);
    await until("the others have gone", () => {
      collect();
      return dials.chained === 1;
    });
    assert.equal(kept.name, "kept");
  },
);
