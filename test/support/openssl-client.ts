/** OpenSSL's own client at a listener that echoes: its single-letter commands do what no client of the runtime can. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

const LAST = "this is the last line";
/** What it prints when it has sent an update of its keys. */
const UPDATED = "KEYUPDATE";

/** Sends the lines, waits until the last of them came back or it left, and answers with all that it printed. */
export async function opensslClient(
  port: number,
  args: readonly string[],
  lines: readonly string[] = [],
): Promise<string> {
  const child = spawn("openssl", ["s_client", "-connect", `127.0.0.1:${port}`, ...args]);
  const closed = once(child, "close");
  let said = "";
  child.stdin.on("error", () => {});
  for (const out of [child.stdout, child.stderr]) out.on("data", (bytes: Buffer) => (said += String(bytes)));
  const times = (text: string): number => said.split(text).length - 1;
  const until = async (text: string, count = 1): Promise<void> => {
    while (times(text) < count && child.exitCode === null) await delay(1);
  };
  await until("Verify return code");
  for (const line of [...lines, LAST]) {
    // A command is one only where it begins what it reads, and all else that it reads with it is lost.
    const [sign, count] = /^[Kk]$/.test(line) ? [UPDATED, times(UPDATED) + 1] : [`${line}\n`, 1];
    child.stdin.write(`${line}\n`);
    await until(sign, count);
  }
  child.stdin.write("Q\n");
  child.stdin.end();
  await closed;
  return said;
}

/** Keys are updated by one side (`k`) and by both (`K`), again and again; what is said after each comes back. */
export async function updateKeys(port: number, lines: number): Promise<string> {
  const said = await opensslClient(
    port,
    ["-tls1_3"],
    Array.from({ length: lines }, (_, at) => (at % 3 === 0 ? "K" : at % 3 === 1 ? "k" : `line ${at}`)),
  );
  assert.match(said, new RegExp(`line ${lines - 1}\n`));
  assertHeardAll(said);
  return said;
}

export function assertHeardAll(said: string): void {
  assert.ok(said.includes(`${LAST}\n`), said);
}
