import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError } from "#core/errors.ts";
import type { UserSupport } from "#core/protocol.ts";
import {
  activeUsers,
  changedRecord,
  changesListener,
  checkRevision,
  nextRevision,
  recordOf,
  type UserBook,
  type UserRecord,
  withUser,
} from "./user-book.ts";

const SUPPORT: UserSupport = {
  label: "Test",
  network: "tcp",
  isAdditional: false,
  credential: "uuid",
  flows: ["fast"],
  makeCredential: () => "made",
  identify: (text) => (text === "" || text === "bad" ? null : text.toLowerCase()),
  written: () => [],
  emptied: (options) => options,
  shareLink: () => null,
  decoyLink: "",
};
const PASSWORDS: UserSupport = { ...SUPPORT, credential: "password", flows: [] };
const EMPTY: UserBook = {
  id: "b",
  listener: "edge",
  protocol: "test",
  revision: 10,
  appliedRevision: 10,
  users: new Map(),
};

function user(name: string, credential: string, id = name): UserRecord {
  const fresh = { id, token: `token of ${id}`, createdAtMs: 1000 };
  return recordOf({ inbound: "edge", revision: 10, name, uuid: credential }, SUPPORT, fresh);
}

const refused = (status: number, pattern: RegExp) => (error: unknown) =>
  error instanceof ApiError && error.status === status && pattern.test(error.message);

test("revisions follow the clock and never stand still", () => {
  assert.equal(nextRevision(10, 5000.7), 5000);
  assert.equal(nextRevision(5000, 5000), 5001);
  assert.equal(nextRevision(5000, 1), 5001);
  checkRevision(EMPTY, 10);
  assert.throws(
    () => checkRevision(EMPTY, 9),
    refused(409, /expected revision 9, the current revision is 10/),
  );
});

test("a new user gets what is left out", () => {
  const record = user(" alice ", "");
  assert.deepEqual(
    [record.name, record.credential, record.flow, record.enabled, record.trafficGeneration],
    ["alice", "made", "", true, 1],
  );
});

test("fields are refused with their names", () => {
  const fresh = { id: "i", token: "t", createdAtMs: 1 };
  const draft = { inbound: "edge", revision: 10, name: "a" };
  const wrong: readonly (readonly [object, UserSupport, RegExp])[] = [
    [{ name: "  " }, SUPPORT, /^name/],
    [{ name: "ä".repeat(129) }, SUPPORT, /^name/],
    [{ uuid: "bad" }, SUPPORT, /^uuid: is not valid/],
    [{ name: "half \ud800" }, SUPPORT, /^name/],
    [{ password: "half \udc00" }, PASSWORDS, /^password/],
    [{ password: "x" }, SUPPORT, /^password/],
    [{ flow: "slow" }, SUPPORT, /^flow/],
    [{ uuid: "x" }, PASSWORDS, /^uuid/],
    [{ flow: "fast" }, PASSWORDS, /^flow/],
  ];
  for (const [extra, support, pattern] of wrong)
    assert.throws(() => recordOf({ ...draft, ...extra }, support, fresh), refused(400, pattern));
  const record = user("a", "x");
  const empty = { revision: 10, uuid: "" };
  assert.throws(() => changedRecord(record, empty, SUPPORT, 2000), refused(400, /must not be empty/));
});

test("names are one in any case, credentials as the listener sees them", () => {
  const book = withUser(EMPTY, "a", user("Alice", "X", "a"), SUPPORT, 2000);
  const put = (record: UserRecord) => withUser(book, record.id, record, SUPPORT, 3000);
  assert.throws(() => put(user("ALICE", "Y", "b")), refused(400, /^name/));
  assert.throws(() => put(user("Bob", "x", "b")), refused(400, /^uuid/));
  assert.equal(put(user("alice", "x", "a")).users.size, 1); // a user does not collide with itself
  assert.equal(book.users.size, 1);
  assert.deepEqual([EMPTY.users.size, book.revision, put(user("Bob", "Y", "b")).revision], [0, 2000, 3000]);
});

test("a change keeps what it does not name, and says whether the listener must be updated", () => {
  const before = user("alice", "x");
  const change = (part: object) => changedRecord(before, { revision: 10, ...part }, SUPPORT, 2000);
  assert.deepEqual(change({}), { ...before, updatedAtMs: 2000 });
  assert.equal(changesListener(before, change({ name: "bob" })), false);
  assert.equal(changesListener(before, change({ uuid: "y" })), true);
  assert.equal(changesListener(before, change({ flow: "fast" })), true);
  assert.equal(changesListener(null, null), false);
  assert.equal(changesListener(null, before), true);
  assert.equal(changesListener(before, null), true);
});

test("the listener gets the users who are enabled and not blocked", () => {
  const book = withUser(EMPTY, "a", user("a", "x"), SUPPORT, 2000);
  const both = withUser(book, "b", { ...user("b", "y"), enabled: false }, SUPPORT, 2000);
  assert.deepEqual(activeUsers(both, new Set(["c"])), [{ id: "a", credential: "x", flow: null }]);
  assert.deepEqual(activeUsers(both, new Set(["a"])), []);
});

test("how many are enabled is known after any changes without a walk", () => {
  const step = fc.tuple(fc.integer({ min: 0, max: 5 }), fc.constantFrom(true, false, null));
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      let book = EMPTY;
      for (const [at, enabled] of steps) {
        const record = enabled === null ? null : { ...user(`${at}`, `${at}`), enabled };
        book = withUser(book, `${at}`, record, SUPPORT, 2000);
        const walked = [...book.users.values()].filter((one) => one.enabled).length;
        assert.equal(book.index?.enabledCount, walked);
      }
    }),
  );
});
