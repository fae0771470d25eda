/** Who and what is at the path of the socket by which an upgrade is asked for. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { askForUpgrade, openRequests, requestPath, type UpgradeAnswer } from "#upgrade/requests.ts";
import { SILENT } from "#core/log.ts";
import { LogHub } from "#host/log.ts";

const skip = process.platform === "linux" ? false : "SKIP upgrade: needs Linux";
const ANSWER: UpgradeAnswer = { done: true, pid: 1, connections: 0, drainMs: 0 };
const answers = async (): Promise<UpgradeAnswer> => ANSWER;

function homeFor(t: TestContext): string {
  const home = mkdtempSync(join(tmpdir(), "weir-requests-"));
  t.after(() => rmSync(home, { recursive: true }));
  return home;
}

test("a file or a link at the path of the socket stays, and weir says so", { skip }, async (t) => {
  for (const put of [
    (path: string) => writeFileSync(path, "of another program"),
    (path: string) => {
      writeFileSync(`${path}.target`, "of another program");
      symlinkSync(`${path}.target`, path);
    },
  ]) {
    const home = homeFor(t);
    const path = requestPath(home);
    put(path);
    const lines: string[] = [];
    const log = new LogHub("info", { write: (line) => void lines.push(line), flush: () => {} });
    (await openRequests(home, answers, log))[Symbol.dispose]();
    assert.equal(readFileSync(path, "utf8"), "of another program");
    assert.match(lines.join("\n"), /weir-upgrade\.sock exists and is no socket/);
  }
});

test("the socket of a process that was killed is replaced, for its user alone", { skip }, async (t) => {
  const home = homeFor(t);
  const script = `require("node:net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`;
  assert.throws(() => execFileSync(process.execPath, ["-e", script, requestPath(home)]), {
    signal: "SIGKILL",
  });
  using _requests = await openRequests(home, answers, SILENT);
  assert.equal(lstatSync(requestPath(home)).mode & 0o777, 0o600);
  assert.deepEqual(await askForUpgrade(home, { to: null, drainMs: 0 }), ANSWER);
});

test("what no process has read is asked again", { skip }, async (t) => {
  for (const turns of [0, 3]) {
    const home = homeFor(t);
    // It ends before the request is written, or with the request unread.
    const end = async (socket: Socket): Promise<void> => {
      before.close();
      for (let turn = 0; turn < turns; turn++) await setImmediate();
      socket.destroy();
    };
    const before = createServer({ pauseOnConnect: true }, (socket) => void end(socket));
    await once(before.listen(requestPath(home)), "listening");
    const asking = askForUpgrade(home, { to: null, drainMs: 0 });
    await once(before, "close");
    using _requests = await openRequests(home, answers, SILENT);
    assert.deepEqual(await asking, ANSWER);
  }
});

test("an executable is named by its absolute path", { skip }, async (t) => {
  const home = homeFor(t);
  using _requests = await openRequests(home, answers, SILENT);
  const answer = await askForUpgrade(home, { to: "bin/weir", drainMs: 0 });
  assert.ok(!answer.done);
  assert.match(answer.reason, /expected an absolute path/);
});
