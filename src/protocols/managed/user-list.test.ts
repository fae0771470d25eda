import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { User } from "#core/inbound.ts";
import { passwordHash } from "#protocols/anytls/wire.ts";
import { parseUserId } from "#protocols/shared/user-id.ts";
import { userTable as vlessTable } from "#protocols/vless/users.ts";
import { VISION } from "#protocols/vless/wire.ts";
import { PasswordTable } from "./password-table.ts";
import { UserList } from "./user-list.ts";

const CREDENTIALS = ["one", "two", "three", "four"];
const user = fc.record<User>({
  id: fc.constantFrom("ada", "bob", "eve", "joe"),
  credential: fc.constantFrom(...CREDENTIALS),
  flow: fc.constantFrom(null, VISION),
});
const lists = fc.array(fc.uniqueArray(user, { selector: ({ id }) => id }), { minLength: 1, maxLength: 12 });

/** What can be seen of a table, or what was thrown. */
function outcome<T>(make: () => T, look: (made: T) => unknown): unknown {
  try {
    return look(make());
  } catch (error) {
    assert.match((error as Error).message, /have the same/);
    return "refused";
  }
}

const sorted = (users: readonly User[]) => users.map((one) => JSON.stringify(one)).sort();
const ids = ["ada", "bob", "eve", "joe"];

test("a table that is changed list by list answers as one made of the last list, and refuses the same lists", () => {
  fc.assert(
    fc.property(lists, (all) => {
      const known = new UserList([]);
      let vless = vlessTable([], "here");
      const none = PasswordTable.empty(passwordHash);
      let anytls = none;
      for (const list of all) {
        const change = known.changeTo(list);
        const inVless = (table: typeof vless) => [
          table.usesVision,
          CREDENTIALS.map((text) => table.find(parseUserId(text) as Buffer)),
          ids.map((id) => table.identities.get(id)),
        ];
        assert.deepEqual(sorted(known.after(change)), sorted(list));
        const made = outcome(() => vlessTable(list, "here"), inVless);
        assert.deepEqual(
          outcome(() => vless.changed(change, "here"), inVless),
          made,
        );
        const inAnytls = (table: typeof anytls) => [
          CREDENTIALS.map((text) => table.find(passwordHash(text))),
          ids.map((id) => table.identities.has(id)),
        ];
        assert.deepEqual(
          outcome(() => anytls.changed(change, "here"), inAnytls),
          outcome(() => none.with(list, "here"), inAnytls),
        );
        if (made === "refused") continue; // the old list stays in force
        vless = vless.changed(change, "here");
        anytls = anytls.changed(change, "here");
        known.take(change);
      }
    }),
  );
});
