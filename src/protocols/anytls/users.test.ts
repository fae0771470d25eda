import assert from "node:assert/strict";
import { test } from "node:test";
import { PasswordTable } from "#protocols/managed/password-table.ts";
import * as wire from "./wire.ts";

test("users: one password each", () => {
  const none = PasswordTable.empty(wire.passwordHash);
  const table = none.with([{ id: "ada", credential: "a", flow: null }], "listener x");
  assert.equal(table.find(wire.passwordHash("a")), "ada");
  assert.equal(table.find(wire.passwordHash("b")), null);
  const twins = ["ada", "bob"].map((id) => ({ id, credential: "same", flow: null }));
  assert.throws(() => none.with(twins, "listener x"), /ada and bob have the same password/);
});
