/** A store that is larger than its cap costs nothing while it waits; its timers are turned by hand. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { governanceWith, governed, policy, settings } from "../../test/support/governed-ledger.ts";

test("a store that is too large is opened as soon as a configuration allows more, and not again and again before", async () => {
  const core = governed();
  await core.apply(settings({ global: policy() }));
  core.session().reserve("upload", 600);
  await core.apply(null);
  let opened = 0;
  const file = {
    open: async () => ({ store: core.store, records: (opened++, core.store.records) }),
    sizeBytes: () => 50_000,
  };
  using governance = governanceWith(core.ledger, file);
  const apply = async (maxStoreSizeBytes: number): Promise<void> =>
    (
      await governance.prepare(settings({ global: policy(), maxStoreSizeBytes }), { tolerant: true })
    ).activate();
  mock.timers.enable({ apis: ["setTimeout"] });
  await apply(20_000);
  assert.match(governance.status().storeFault ?? "", /more than max-store-size 20000/);
  for (let minute = 0; minute < 10; minute++) {
    mock.timers.tick(60_000);
    await setImmediate();
    await setImmediate();
  }
  mock.timers.reset();
  assert.ok(opened <= 2, `opened ${opened} times`);
  await apply(60_000);
  assert.equal(governance.status().storeFault, null);
  assert.equal(governance.status().policies[0]?.counters.upload, 600);
});
