/** Users by template and in bulk: names, steps and orders. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { namesOf, stepOf } from "#ui/state/bulk-steps.ts";
import { nextOrder, sorted, type Order } from "#ui/state/sorted.ts";
import { USER_KEYS } from "#ui/state/user-order.ts";
import { managedUser } from "../support/managed-user.ts";

const DAY_MS = 86_400_000;

test("names by a pattern have numbers of one length, which stand at the end where it has no place for them", () => {
  assert.deepEqual(namesOf("user-{n}", 1, 3), ["user-1", "user-2", "user-3"]);
  assert.deepEqual(namesOf("shop {n} a", 9, 2), ["shop 09 a", "shop 10 a"]);
  assert.deepEqual(namesOf("guest", 1, 1), ["guest1"]);
});

test("an end is put off from itself, or from now where it has passed or is none", () => {
  const now = 1000 * DAY_MS;
  const endOf = (end?: number) =>
    stepOf(managedUser("a", end === undefined ? {} : { expires_at: end }), "extend", { days: 30, nowMs: now })
      .body;
  assert.deepEqual(endOf(now + DAY_MS), { expires_at: now + 31 * DAY_MS });
  assert.deepEqual(endOf(now - DAY_MS), { expires_at: now + 30 * DAY_MS });
  assert.deepEqual(endOf(), { expires_at: now + 30 * DAY_MS });
});

test("columns order the users up, down, and not at all; numbers in names count as numbers", () => {
  const list = [
    managedUser("user-10", { download_bytes: 5 }),
    managedUser("user-9", { download_bytes: 7 }),
    managedUser("b"),
  ];
  const names = (order: Order | null) => sorted(list, USER_KEYS, order).map(({ name }) => name);
  const up = nextOrder(null, 0);
  const down = nextOrder(up, 0);
  assert.deepEqual(names(up), ["b", "user-9", "user-10"]);
  assert.deepEqual(names(down), ["user-10", "user-9", "b"]);
  assert.equal(nextOrder(down, 0), null);
  assert.deepEqual(names(nextOrder(down, 5)), ["b", "user-10", "user-9"]);
});
