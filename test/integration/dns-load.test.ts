/** A burst of real questions against the listener of the running program. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { freePorts } from "../support/free-ports.ts";
import { missing } from "../support/peer.ts";
import { startCore } from "../support/start-core.ts";

const NAMES = 1000;

test(
  "dnsperf: every question of a two-second burst is answered",
  { skip: missing("dnsperf") },
  async (context) => {
    const [port, upstream] = (await freePorts(2)) as [number, number];
    await using core = await startCore(`
dns:
  enable: true
  listen: 127.0.0.1:${port}
  enhanced-mode: fake-ip
  nameserver: ["127.0.0.1:${upstream}"]
  default-nameserver: ["127.0.0.1:${upstream}"]
`);
    const questions = join(core.home, "questions");
    writeFileSync(questions, Array.from({ length: NAMES }, (_, at) => `name${at}.load.test A\n`).join(""));
    const args = ["-s", "127.0.0.1", "-p", String(port), "-d", questions, "-l", "2", "-c", "4", "-q", "50"];
    const { stdout } = await promisify(execFile)("dnsperf", args);
    const count = (what: string) => Number(new RegExp(`${what}:\\s+(\\d+)`).exec(stdout)?.[1]);
    assert.ok(count("Queries completed") > NAMES, stdout);
    assert.equal(count("Queries lost"), 0, stdout);
    assert.match(stdout, /Response codes:\s+NOERROR \d+ \(100\.00%\)/);
    context.diagnostic(`${/Queries per second:\s+([\d.]+)/.exec(stdout)?.[1]} answers a second`);
  },
);
