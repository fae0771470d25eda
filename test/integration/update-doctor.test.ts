/** weir doctor says of the release folder what is wrong with it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Finding } from "#cli/doctor/finding.ts";
import { archiveOf, ReleaseFolder } from "../support/release.ts";

const WEIR = fileURLToPath(new URL("../../bin/weir", import.meta.url));
const skip = process.platform === "win32" ? "the launcher is a script for sh" : false;

/** What doctor finds of updates by this configuration. */
async function findings(home: string, key: string, url: string): Promise<readonly Finding[]> {
  const text = `update: { url: "${url}", public-key: ${JSON.stringify(key)} }\n`;
  writeFileSync(join(home, "config.yaml"), text);
  const { promise, resolve } = Promise.withResolvers<string>();
  execFile(WEIR, ["doctor", "-json", "-d", home], (_error, stdout) => resolve(stdout));
  const lines = (await promise).trim().split("\n");
  return lines.map((line): Finding => JSON.parse(line)).filter(({ what }) => what === "updates");
}

test("a folder that answers, one with another's signature, and none", { skip }, async () => {
  const home = mkdtempSync(join(tmpdir(), "weir-doctor-"));
  const [release, other] = [await ReleaseFolder.open(), await ReleaseFolder.open()];
  try {
    release.publish("9.9.9", archiveOf("9.9.9"));
    const [good, installation] = await findings(home, release.publicKey, release.url);
    assert.match(
      good?.found ?? "",
      /127\.0\.0\.1:\d+ has 9\.9\.9, which cannot be told to be newer than dev/,
    );
    assert.equal(good?.level, "ok");
    assert.match(installation?.found ?? "", /this is a checkout/);
    const [forged] = await findings(home, other.publicKey, release.url);
    assert.deepEqual([forged?.level, forged?.meaning], ["error", "nothing of this release folder is taken"]);
    assert.match(forged?.found ?? "", /not by the key in update\.public-key/);
    const [gone] = await findings(home, release.publicKey, "http://127.0.0.1:1/");
    assert.deepEqual([gone?.level, gone?.meaning], ["warning", "newer versions are not found"]);
  } finally {
    await release[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
    rmSync(home, { recursive: true });
  }
});
