import assert from "node:assert/strict";
import { test } from "node:test";
import { CAN_INJECT, ENDS, proveFaults } from "../proofs/store-faults.ts";

const skip = CAN_INJECT ? false : "SKIP store faults: needs strace(1) and the right to trace";

for (const end of ENDS)
  test(
    `a change that is refused because the medium fails is not in force later (${end})`,
    { skip },
    async () => {
      const { answers, faults } = await proveFaults(["fsync,fdatasync"], 2, end);
      assert.deepEqual(faults, []);
      assert.ok((answers["refused"] ?? 0) > 0, JSON.stringify(answers));
      const written = await proveFaults(["pwrite64"], 1, end);
      assert.deepEqual(written.faults, []);
    },
  );
