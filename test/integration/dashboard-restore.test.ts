/** A backup is looked at and put in force in a real browser, against the real program. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { decodeContents, encodeContents } from "#backup/contents.ts";
import { openBackup, sealBackup } from "#backup/sealing.ts";
import { noBrowser, openBrowser } from "../support/browser.ts";
import { freePorts } from "../support/free-ports.ts";
import { CONTROLLER_SECRET, ManagedCore, stateFolder } from "../support/managed-core.ts";

test(
  "a backup is chosen, looked at, and put in force behind a confirmation",
  { skip: noBrowser },
  async () => {
    using folder = stateFolder();
    const [port] = (await freePorts(1)) as [number];
    await using core = await ManagedCore.start({ controller: `127.0.0.1:${port}` });
    await core.create("edge", "alice");
    const headers = { authorization: `Bearer ${CONTROLLER_SECRET}` };
    const plain = Buffer.from(await (await fetch(`${core.url}/api/svc/backup`, { headers })).bytes());
    const contents = encodeContents(decodeContents(await openBackup(plain, null)));
    const file = join(folder.path, "weir.backup");
    writeFileSync(file, await sealBackup(contents, "correct horse"));
    await core.create("edge", "bob");
    core.core.write(`${readFileSync(join(core.core.home, "config.yaml"), "utf8")}# later\n`);

    await using browser = await openBrowser();
    await using watched = await browser.open();
    const { page, complaints } = watched;
    await page.goto(`${core.url}/ui/#/settings`);
    await page.getByLabel("Secret").fill(CONTROLLER_SECRET);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Restore a backup …" }).click();
    const dialog = page.getByRole("dialog", { name: "Restore a backup" });
    await dialog.getByLabel("Backup file").setInputFiles(file);
    await dialog.getByLabel(/^Passphrase/).fill("wrong horse");
    await dialog.getByRole("button", { name: "Look at it" }).click();
    await dialog.getByText("the passphrase is not the one that it was encrypted with").waitFor();
    await dialog.getByLabel(/^Passphrase/).fill("correct horse");
    await dialog.getByRole("button", { name: "Look at it" }).click();
    await dialog.getByText("bob", { exact: true }).waitFor();
    await dialog.getByText("# later").waitFor();
    const put = dialog.getByRole("button", { name: "Restore and restart" });
    assert.ok(await put.isDisabled(), "it is confirmed first");
    await dialog.getByRole("switch", { name: /Replace the present state/ }).click();
    const from = core.core.output().length;
    await put.click();
    await core.core.shows(/restore: the backup of .* is in force/, from);
    await page.getByLabel("Secret").fill(CONTROLLER_SECRET); // sessions have ended
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Restore a backup …" }).waitFor();
    const { users } = (await core.ask("GET", "/api/admin/users")).json;
    assert.deepEqual(users.map(({ name }) => name), ["alice"]); // prettier-ignore
    const unexpected = complaints.filter(
      (text) => !/Failed to load resource|WebSocket connection/.test(text),
    );
    assert.deepEqual(unexpected, []);
  },
);
