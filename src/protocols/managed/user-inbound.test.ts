import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { AuthError, ConfigError } from "#core/errors.ts";
import type { User } from "#core/inbound.ts";
import type { Session } from "#core/session.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import type { TransportServer } from "#transport/server.ts";
import { openInboundEnv } from "../../../test/support/inbound-env.ts";
import { UserInbound, type UserTable } from "./user-inbound.ts";

const ARRIVAL = { source: { ip: LOOPBACK_V4, port: 1 }, local: { ip: LOOPBACK_V4, port: 2 } };

function tableOf(users: readonly User[]): UserTable {
  if (users.some(({ credential }) => credential === "")) throw new ConfigError("an empty password");
  return { identities: new Map(users.map(({ id, credential }) => [id, credential])) };
}

const user = (id: string, credential: string): User => ({ id, credential, flow: null });

function layer(security: "none" | "tls"): TransportServer & { disposed: number } {
  return {
    security,
    isBare: false,
    upgradePath: null,
    contexts: null,
    isOverTcp: true,
    quic: null,
    disposed: 0,
    serve() {},
    [Symbol.dispose]() {
      this.disposed++;
    },
  };
}

async function openShell(users: readonly User[], accept: (session: Session) => void = () => {}) {
  const env = openInboundEnv({ accept });
  const shell = new UserInbound(env, { type: "Made", users: tableOf(users), written: users, tableOf });
  const listenOptions = { mayBeBare: false, silenceMs: null, authenticate: async () => {} };
  const cover = layer("tls");
  const inbound = await shell.listen(cover, listenOptions);
  return { env, shell, inbound, cover, listenOptions };
}

test("a changed or removed user loses all open sessions, the others keep theirs, and a bad list changes nothing", async () => {
  const { env, shell, inbound } = await openShell([user("ada", "1"), user("bob", "2"), user("eve", "3")]);
  await using _ = env;
  const ended: string[] = [];
  for (const name of ["ada", "bob", "eve"])
    shell.admit(name, shell.users, ARRIVAL).hold(() => ended.push(name));
  assert.throws(() => inbound.replaceUsers([user("ada", "")]), ConfigError);
  assert.deepEqual(ended, []);
  inbound.replaceUsers([user("ada", "1"), user("bob", "other")]);
  assert.deepEqual(
    ended.toSorted((a, b) => (a < b ? -1 : 1)),
    ["bob", "eve"],
  );
});

test("a change by itself does what the whole list with it would do", async () => {
  const { env, shell, inbound } = await openShell([]);
  await using _ = env;
  inbound.replaceUsers([user("ada", "1"), user("bob", "2")]);
  const ended: string[] = [];
  for (const name of ["ada", "bob"]) shell.admit(name, shell.users, ARRIVAL).hold(() => ended.push(name));
  inbound.changeUsers?.({ gone: [], come: [user("eve", "3")] });
  assert.throws(() => inbound.changeUsers?.({ gone: ["bob"], come: [user("ada", "")] }), ConfigError);
  assert.deepEqual(ended, []);
  inbound.changeUsers?.({ gone: ["bob"], come: [user("ada", "other")] });
  assert.deepEqual(
    ended.toSorted((a, b) => (a < b ? -1 : 1)),
    ["ada", "bob"],
  );
  assert.deepEqual(
    [...shell.users.identities],
    [
      ["ada", "other"],
      ["eve", "3"],
    ],
  );
});

test("a user removed during the handshake is not let in", async () => {
  const { env, shell, inbound } = await openShell([user("ada", "1")]);
  await using _ = env;
  const before = shell.users;
  inbound.replaceUsers([user("ada", "2")]);
  assert.throws(() => shell.admit("ada", before, ARRIVAL), AuthError);
  inbound.replaceUsers([user("ada", "1")]);
  shell.admit("ada", before, ARRIVAL);
  shell.admit(null, before, ARRIVAL);
});

test("a session carries its user, and a failed dial ends a stream that has no answer", async () => {
  const sessions: Session[] = [];
  const { env, shell, inbound } = await openShell(
    [user("ada", "1")],
    (session) => void sessions.push(session),
  );
  await using _ = env;
  const connection = shell.admit("ada", shell.users, ARRIVAL);
  const [first, second] = [new PassThrough(), new PassThrough()];
  connection.holdStream(first, first);
  connection.onSilentStream(first, toDestination("one.test", 1));
  connection.onSilentStream(second, toDestination("two.test", 2));
  assert.deepEqual(
    sessions.map(({ metadata }) => [metadata.inbound.user, metadata.inbound.type, metadata.destination.host]),
    [
      ["ada", "Made", "one.test"],
      ["ada", "Made", "two.test"],
    ],
  );
  const [, other] = sessions;
  if (other?.network === "tcp") other.reply(new Error("refused"));
  assert.deepEqual([first.destroyed, second.destroyed], [false, true]);
  inbound.replaceUsers([]);
  assert.ok(first.destroyed);
});

test("nothing that hides the traffic: refused, and the layer is disposed of", async () => {
  const { env, shell, listenOptions, inbound, cover } = await openShell([]);
  await using _ = env;
  const bare = layer("none");
  await assert.rejects(shell.listen(bare, listenOptions), /made hides nothing by itself/);
  assert.equal(bare.disposed, 1);
  await inbound[Symbol.asyncDispose]();
  assert.equal(cover.disposed, 1);
});
