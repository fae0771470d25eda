import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { Endpoint, Ip } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { clientPackets } from "./client-packets.ts";
import { CipherMemory } from "./memory.ts";
import { masterKey, methodOf } from "./methods.ts";
import { serverKeys } from "./server-keys.ts";
import { openRequest } from "./server-packets.ts";

const AES = methodOf("aes-128-gcm");
const NAMES = Array.from({ length: 100 }, (_, at) => `user ${at}`);
const ITEM = { payload: Buffer.from("abc"), destination: toDestination("8.8.8.8", 53) };

/** A server of a hundred users, on a clock that is set. */
class Server {
  nowMs = 0;
  readonly #memory = new CipherMemory(() => this.nowMs);
  #keys = Server.#keysOf(NAMES);

  static #keysOf(names: readonly string[]) {
    const users = names.map((name) => ({ id: name, credential: `password of ${name}`, flow: null }));
    return serverKeys(AES, "", users);
  }

  replaceUsers(names: readonly string[]): void {
    this.#keys = Server.#keysOf(names);
  }

  /** Whose it was. */
  open(packet: Buffer, source: Endpoint): string | null {
    const opened = openRequest(this.#keys, packet, source, () => undefined, Date.now, this.#memory);
    return opened?.session.user ?? null;
  }

  hear(name: string, source: Endpoint): string | null {
    const keys = [masterKey(AES, `password of ${name}`)];
    return this.open(clientPackets(AES, keys, Date.now).seal(ITEM), source);
  }
}

const at = (ip: string, port = 9): Endpoint => ({ ip: ip as Ip, port });
const HOME = at("192.0.2.1");

function flood(server: Server): void {
  const forged = randomBytes(60);
  for (let count = 0; count < 300; count++) server.open(forged, at(`198.51.100.${count % 250}`, count + 1));
}

test("forged datagrams have all keys tried for so long, and never keep known users out", () => {
  const server = new Server();
  assert.equal(server.hear("user 99", HOME), "user 99");
  flood(server);
  assert.equal(
    server.hear("user 98", at("203.0.113.1")),
    null,
    "no more keys are tried for an unknown source",
  );
  assert.equal(server.hear("user 99", HOME), "user 99");
  assert.equal(server.hear("user 99", at("192.0.2.1", 10)), "user 99", "from another port");
  server.nowMs += 100;
  assert.equal(server.hear("user 98", at("203.0.113.1")), "user 98");
  assert.equal(server.hear("user 97", HOME), "user 97", "another one behind the same address");
  flood(server);
  assert.equal(server.hear("user 99", at("192.0.2.1", 10)), "user 99");
});

test("a source lets no client in by the key of a user that was taken away", () => {
  const server = new Server();
  assert.equal(server.hear("user 99", HOME), "user 99");
  server.replaceUsers(NAMES.slice(0, 99));
  assert.equal(server.hear("user 99", HOME), null);
  assert.equal(server.hear("user 1", HOME), "user 1");
});
