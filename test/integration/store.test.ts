/** The sealed store against damage, against the end of its process, and against a full disk. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { SILENT, type Log } from "#core/log.ts";
import { Store } from "#store/backup.ts";
import { randomFrom } from "../support/random.ts";

const PARTS = ["users"];
const WRITER = fileURLToPath(new URL("../support/store-writer.ts", import.meta.url));
const NODE = [process.execPath, "--disable-warning=ExperimentalWarning"];

function folder(): { readonly home: string; readonly path: string } & Disposable {
  const home = mkdtempSync(join(tmpdir(), "weir-store-"));
  const remove = () => rmSync(home, { recursive: true, force: true });
  return { home, path: join(home, "s.db"), [Symbol.dispose]: remove };
}

const open = (path: string, log: Log = SILENT) => Store.open({ path, parts: PARTS, nowMs: Date.now, log });

function listening(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (text: string | (() => string)) => void lines.push(typeof text === "string" ? text : text());
  return { lines, log: { ...SILENT, error: write, warning: write } };
}

test("200 of 200 changes of eight bytes anywhere in the file are found and healed", () => {
  using at = folder();
  const wanted = new Map(Array.from({ length: 60 }, (_, n) => [`k${n}`, `value ${n} `.repeat(20)] as const));
  {
    using store = open(at.path);
    const changes = Array.from(wanted, ([key, text]) => ({ part: "users", key, value: Buffer.from(text) }));
    store.commit(changes, { backup: true });
  }
  const whole = readFileSync(at.path);
  const random = randomFrom(20_260_801);
  let found = 0;
  for (let round = 0; round < 200; round++) {
    const bytes = Buffer.from(whole);
    const from = random(bytes.length - 8);
    for (let i = 0; i < 8; i++) bytes[from + i] = (bytes[from + i] as number) ^ (1 + random(255));
    writeFileSync(at.path, bytes);
    const { log, lines } = listening();
    using store = open(at.path, log);
    if (lines.some((line) => line.includes("kept as"))) found++;
    const contents = new Map([...store.entries("users")].map(([key, value]) => [key, value.toString()]));
    assert.deepEqual(contents, wanted, `offset ${from}`);
  }
  assert.equal(found, 200);
});

test("killed 20 times in the middle of commits, it never loses one that was acknowledged", async () => {
  using at = folder();
  let known = 0;
  for (let round = 0; round < 20; round++) {
    const child = spawn(NODE[0] as string, [...NODE.slice(1), WRITER, at.path, "2000", "same"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
    await once(child.stdout, "data");
    await sleep((round * 7) % 40);
    child.kill("SIGKILL");
    await once(child, "close");
    const lines = printed.split("\n");
    const acknowledged = Number(lines.at(-2)); // what follows the last line break was never said
    assert.ok(acknowledged > known);
    using store = open(at.path);
    const [[, value] = []] = [...store.entries("users")];
    const stored = value?.readUInt32BE(0) as number;
    assert.ok(stored >= acknowledged, `${stored} is stored, ${acknowledged} was acknowledged`);
    assert.ok(stored <= acknowledged + 1);
    known = store.generation;
  }
});

const CAN_MOUNT =
  spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "none", "/mnt"], { stdio: "ignore" }).status === 0;

test(
  "on a full disk a commit fails with nothing changed, and all that was acknowledged is there",
  { skip: CAN_MOUNT ? false : "SKIP store full disk: needs root and unshare(1) for a tmpfs of its own" },
  () => {
    const script = [
      "set -e",
      "mount -t tmpfs -o size=2m,mode=0700 none /mnt",
      "head -c 1600000 /dev/zero > /mnt/other",
      `set +e; ${NODE.join(" ")} ${WRITER} /mnt/s.db 20000 grow; echo "exit $?"; rm /mnt/other`,
      `${NODE.join(" ")} ${WRITER} /mnt/s.db 20000 grow; echo "exit $?"`,
    ].join("\n");
    const printed = execFileSync("unshare", ["-m", "sh", "-c", script], { encoding: "utf8" });
    const lines = printed.trim().split("\n");
    const firstEnd = lines.indexOf("exit 3");
    const failed = /^failed StoreError at (\d+)$/.exec(lines[firstEnd - 1] as string);
    assert.ok(failed !== null, printed);
    const acknowledged = Number(lines[firstEnd - 2]);
    assert.equal(Number(failed[1]), acknowledged);
    // With room again, the next process goes on where the first one was stopped.
    const again = /^failed StoreError at (\d+)$/m.exec(lines.slice(firstEnd + 1).join("\n"));
    assert.ok(again !== null && Number(again[1]) > acknowledged, printed);
  },
);
