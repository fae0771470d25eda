import assert from "node:assert/strict";
import { test } from "node:test";
import { CAN_INJECT, proveFaults } from "../proofs/store-faults.ts";

const skip = CAN_INJECT ? false : "SKIP store faults: needs strace(1) and the right to trace";

test(
  "a change that is refused because the medium fails is not in force after a crash",
  { skip },
  async () => {
    const { answers, faults } = await proveFaults(["fsync,fdatasync"], 2);
    assert.deepEqual(faults, []);
    assert.ok((answers["refused"] ?? 0) > 0, JSON.stringify(answers));
    const written = await proveFaults(["pwrite64"], 1);
    assert.deepEqual(written.faults, []);
  },
);
