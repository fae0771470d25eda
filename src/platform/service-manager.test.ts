import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { listenForNotifications } from "../../test/support/notify-socket.ts";
import { openServiceManager, watchdogMs } from "./service-manager.ts";

const skip = process.platform === "linux" ? false : "SKIP service manager: needs Linux";

test("a service manager is notified of the start, of reloads, of the end and of life", { skip }, (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const folder = mkdtempSync(join(tmpdir(), "weir-notify-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const path of [join(folder, "socket"), `@weir-${process.pid}-notify`]) {
    using manager = listenForNotifications(path);
    const env = { NOTIFY_SOCKET: path, WATCHDOG_USEC: "3000000", WATCHDOG_PID: String(process.pid) };
    using service = openServiceManager(env, SILENT);
    service.ready("all is well");
    assert.equal(manager.take(), "READY=1\nSTATUS=all is well");
    service.reloading();
    assert.match(manager.take() ?? "", /^RELOADING=1\nMONOTONIC_USEC=\d+$/);
    t.mock.timers.tick(1500);
    assert.equal(manager.take(), "WATCHDOG=1");
    service.stopping();
    assert.equal(manager.take(), "STOPPING=1");
  }
});

test("what a busy service manager could not take is said again, in order", { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "weir-notify-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "socket");
  using manager = listenForNotifications(path);
  using service = openServiceManager({ NOTIFY_SOCKET: path }, SILENT);
  const room = Number(readFileSync("/proc/sys/net/unix/max_dgram_qlen", "utf8"));
  const said = Array.from({ length: room + 20 }, (_, at) => `turn ${at}`);
  for (const text of said) service.ready(text);
  for (const text of said) assert.equal(await manager.next(), `READY=1\nSTATUS=${text}`);
});

test("no service manager, and one that does not listen, are no trouble", { skip }, () => {
  const said: string[] = [];
  const log = { ...SILENT, warning: (text: unknown) => void said.push(String(text)) };
  openServiceManager({}, log).ready("");
  openServiceManager({ NOTIFY_SOCKET: "relative" }, log).ready("");
  const gone = openServiceManager({ NOTIFY_SOCKET: "/nowhere/socket" }, log);
  gone.ready("");
  gone.stopping();
  assert.deepEqual(said, [
    'NOTIFY_SOCKET: expected an absolute path or @name, got "relative"',
    "notify the service manager: ENOENT",
  ]);
});

test("signs of life are for the process that was meant", () => {
  assert.equal(watchdogMs({ WATCHDOG_USEC: "30000000" }, 7), 30_000);
  assert.equal(watchdogMs({ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "8" }, 7), null);
  for (const usec of ["", "0", "-1", "soon"]) assert.equal(watchdogMs({ WATCHDOG_USEC: usec }, 7), null);
});
