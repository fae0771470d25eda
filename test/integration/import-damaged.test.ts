/** Databases of panels are not trusted: whatever stands in the bytes, the import reads or refuses, and nothing else. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "#core/errors.ts";
import { assemble } from "#migration/assemble.ts";
import { LeftOut } from "#migration/imported.ts";
import { openForeign } from "#migration/sqlite.ts";
import { readThreeXUi } from "#migration/three-x-ui.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { stateFolder } from "../support/managed-core.ts";
import { writeThreeXUi } from "../support/panel-databases.ts";
import { randomFrom } from "../support/random.ts";

/** Throws what the import throws. */
function take(path: string): number {
  using database = openForeign(path);
  const source = { protocols: PROTOCOLS, report: new LeftOut(), nowMs: 1e12 };
  return assemble(readThreeXUi(database, source), {
    ...source,
    publicBaseUrl: "",
    store: "users.db",
    formerFile: "former.json",
  }).listeners;
}

test("a database that is cut or has other bytes is read or refused with ConfigError", () => {
  using folder = stateFolder();
  const [good, damaged] = [join(folder.path, "good.db"), join(folder.path, "damaged.db")];
  const client = { id: "6d27a52f-4539-4ac1-9bd4-b8e05e53c197", email: "a", totalGB: 5 };
  const settings = { clients: [client], decryption: "none" };
  writeThreeXUi(good, [{ protocol: "vless", port: 1001, settings }], [{ email: "a", up: 1, down: 2 }]);
  assert.equal(take(good), 1);
  const bytes = readFileSync(good);
  const random = randomFrom(523);
  let refused = 0;
  for (let run = 0; run < 600; run++) {
    const copy = Buffer.from(run % 2 === 0 ? bytes.subarray(0, random(bytes.length)) : bytes);
    if (run % 2 === 1)
      for (let change = 0; change <= run % 9; change++) copy[random(copy.length)] = random(256);
    writeFileSync(damaged, copy);
    try {
      take(damaged);
    } catch (error) {
      assert.ok(error instanceof ConfigError, `run ${run}: ${String(error)}`);
      refused++;
    }
  }
  assert.ok(refused > 200, `${refused} refused`);
});
