/** What the real program reports to systemd. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { askForUpgrade } from "#upgrade/requests.ts";
import { listenForNotifications } from "../support/notify-socket.ts";
import { startCore } from "../support/start-core.ts";

const skip = process.platform === "linux" ? false : "SKIP service manager: needs Linux";

test("the start, a reload, a refused reload, signs of life, the end", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "weir-notify-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "socket");
  using manager = listenForNotifications(path);
  const isSignOfLife = (text: string): boolean => text === "WATCHDOG=1";
  const next = (): Promise<string> => manager.next((text) => !isSignOfLife(text));
  await using core = await startCore("mixed-port: 0\n", {
    env: { NOTIFY_SOCKET: path, WATCHDOG_USEC: "200000" },
  });
  assert.equal(await next(), "READY=1\nSTATUS=mode rule, 0 rules, 0 proxies");
  core.write("mixed-port: 0\nmode: direct\n");
  process.kill(core.pid, "SIGHUP");
  assert.match(await next(), /^RELOADING=1\nMONOTONIC_USEC=\d+$/);
  assert.equal(await next(), "READY=1\nSTATUS=mode direct, 0 rules, 0 proxies");
  core.write("mode: nonsense\n");
  process.kill(core.pid, "SIGHUP");
  assert.match(await next(), /^RELOADING=1/);
  assert.match(await next(), /^READY=1\nSTATUS=mode direct/);
  for (let lives = 0; lives < 2; lives++) await manager.next(isSignOfLife);
  assert.equal(await core.stop(), 0);
  assert.equal(await next(), "STOPPING=1");
});

test(
  "an upgrade: the manager is told of the new process by the old one, and then by itself",
  { skip },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "weir-notify-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "socket");
    using manager = listenForNotifications(path);
    const next = (): Promise<string> => manager.next((text) => text !== "WATCHDOG=1");
    await using core = await startCore("mixed-port: 0\n", {
      env: { NOTIFY_SOCKET: path, WATCHDOG_USEC: "60000000", WATCHDOG_PID: "1" },
    });
    assert.match(await next(), /^READY=1/);
    const answer = await askForUpgrade(core.home, { to: null, drainMs: 0 });
    assert.ok(answer.done, JSON.stringify(answer));
    using _ended = { [Symbol.dispose]: () => void process.kill(answer.pid, "SIGKILL") }; // before the first one is waited for
    assert.equal(await next(), `MAINPID=${answer.pid}`);
    assert.match(await next(), /^READY=1/);
  },
);
