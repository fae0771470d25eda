import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { itemAt } from "#lib/at.ts";
import { toDestination } from "#net/address/ip.ts";
import { newRequest } from "./begin.ts";
import * as header from "./header.ts";
import { findByAuthId, vmessUsers } from "./users.ts";

const SECONDS = 1_700_000_000;

function usersNamed(names: readonly string[]) {
  const users = names.map((id) => ({ id, credential: randomUUID(), flow: null }));
  return vmessUsers(users, "listener x");
}

function prefixOf(commandKey: Uint8Array): Buffer {
  const destination = toDestination("example.com", 443);
  const request = newRequest({ options: 5, security: header.SECURITY_AES, command: 1, destination });
  return header
    .sealRequest(commandKey, request, header.newChance(SECONDS * 1000))
    .subarray(0, header.PREFIX_BYTES);
}

test("each of a hundred users is found by what its client says first; an unknown client is not", () => {
  const users = usersNamed(Array.from({ length: 100 }, (_, index) => `user ${index}`));
  for (const user of users.all) {
    const found = findByAuthId(users, prefixOf(user.commandKey));
    assert.deepEqual(found, { user, unixSeconds: SECONDS });
  }
  const unknown = itemAt(usersNamed(["mallory"]).all, 0);
  assert.equal(findByAuthId(users, prefixOf(unknown.commandKey)), null);
  assert.equal(findByAuthId(usersNamed([]), prefixOf(unknown.commandKey)), null);
});

test("tables of users that take turns find their own", () => {
  const [left, right] = [usersNamed(["ada", "bob"]), usersNamed(["ada", "eve"])];
  for (const table of [left, right, left, right])
    for (const user of table.all) {
      const prefix = prefixOf(user.commandKey);
      assert.equal(findByAuthId(table, prefix)?.user, user);
      assert.equal(findByAuthId(table === left ? right : left, prefix), null);
    }
});
