import assert from "node:assert/strict";
import { test } from "node:test";
import { openTunDevices } from "#platform/tun.ts";
import type { Ip } from "#core/session.ts";
import { Hijack } from "./hijack.ts";

test("transparent-proxy §6.4: what is taken for a question", () => {
  const hijack = new Hijack(
    [
      { host: "0.0.0.0", port: 53 },
      { host: "9.9.9.9", port: 5353 },
    ],
    ["198.18.0.2" as Ip],
  );
  const taken = (ip: string, port: number) => hijack.takesEndpoint(ip as Ip, port);
  assert.deepEqual(
    [taken("1.2.3.4", 53), taken("2001:db8::1", 53), taken("9.9.9.9", 5353)],
    [true, true, true],
  );
  assert.deepEqual([taken("1.2.3.4", 5353), taken("9.9.9.9", 853)], [false, false]);
  const bare = new Hijack([], ["198.18.0.2" as Ip]);
  assert.equal(bare.takesEndpoint("198.18.0.2" as Ip, 53), true);
  assert.equal(bare.takesEndpoint("198.18.0.1" as Ip, 53), false);
  assert.throws(() => new Hijack([{ host: "dns.test", port: 53 }], []), /dns-hijack: expected any:53/);
});

test("where there is no TUN the error names the key", () => {
  assert.throws(() => openTunDevices("tun.enable", "darwin"), {
    name: "ConfigError",
    message: "tun.enable: only Linux can do this, this system is darwin",
  });
});
