import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../test/support/config-env.ts";
import { parseConfig } from "#config/parse.ts";
import { tunSettings } from "./tun-settings.ts";

function settings(tun: string, listener: string) {
  const text = `tun: {enable: true, ${tun}}\nlisteners: [{name: lab, type: tun, inet4-address: [10.77.0.1/24], ${listener}}]\n`;
  const { config, errors } = parseConfig(text, testEnv());
  assert.deepEqual(errors ?? [], []);
  assert.ok(config !== undefined);
  return tunSettings(config);
}

test("one TUN is kept in: with auto-redirect, else the first with routes; closed is an error for another", () => {
  const guarded = (tun: string, listener: string) =>
    settings(tun, listener).flatMap(({ name, capture }) => (capture.guarded ? [name] : []));
  assert.deepEqual(guarded("auto-route: true", "auto-route: true"), ["DEFAULT-TUN"]);
  assert.deepEqual(guarded("auto-route: true", "auto-route: true, auto-redirect: true"), ["lab"]);
  assert.deepEqual(guarded("auto-route: false", "auto-route: true, on-exit: closed"), ["lab"]);
  assert.deepEqual(guarded("auto-route: false", "auto-route: false"), []);
  assert.throws(
    () => settings("auto-route: true", "auto-route: true, on-exit: closed"),
    /lab: on-exit: closed: one TUN alone can be kept in, and that is DEFAULT-TUN/,
  );
});
