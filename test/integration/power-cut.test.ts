/** The power goes behind a write that has been reported as done: what it replaced, or what it wrote, is there whole. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { afterPowerCut, powerCutFault } from "../support/power-cut.ts";

const options = { skip: powerCutFault(), timeout: 60_000 };

test("the pages of a dashboard", options, () => {
  const said = afterPowerCut(
    `import { installPages } from "#archive/install.ts";
    import { zip } from "./test/support/archives.ts";
    const pages = [{ name: "index.html", text: "<title>new</title>" }, { name: "deep/a.js", text: "let a;" }];
    await installPages(zip(pages), "/mnt/ui", { maxBytes: 1e6, maxEntries: 10, maxRatio: 100 });`,
    `import { readFileSync } from "node:fs";
    for (const name of ["index.html", "deep/a.js"]) console.log(readFileSync("/mnt/ui/" + name, "utf8"));`,
  );
  assert.equal(said, "<title>new</title>\nlet a;\n");
});

test("a configuration that weir import replaces", options, () => {
  const said = afterPowerCut(
    `import { writeFileSync } from "node:fs";
    import { importCommand } from "#cli/import.ts";
    writeFileSync("/mnt/links", "ss://YWVzLTEyOC1nY206c2VjcmV0@192.0.2.1:8388#new\\n");
    for (let round = 0; round < 2; round++)
      await importCommand(["share-links", "/mnt/links", "-d", "/mnt/home", "-force"], {});`,
    `import { readFileSync } from "node:fs";
    console.log(/name: new/.test(readFileSync("/mnt/home/config.yaml", "utf8")));`,
  );
  assert.equal(said, "true\n");
});

test("the configuration that a restore which is taken back brings back", options, () => {
  const files = `import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
    import { giveUp } from "#backup/put-in-force.ts";
    import { stageRestore } from "#backup/stage.ts";
    import { restoreAtStart } from "#cli/staged-restore.ts";
    import { SILENT } from "#core/log.ts";
    const home = "/mnt/home";
    const file = home + "/config.yaml";`;
  const said = afterPowerCut(
    `${files}
    mkdirSync(home, { mode: 0o700 });
    writeFileSync(file, "mode: rule # old", { flush: true });
    const choices = { selected: {}, storage: {} };
    const contents = { createdAtMs: 0, version: "1", configuration: "mode: rule # new", stores: [], choices };
    const by = { kind: "owner", name: "controller" };
    stageRestore(contents, { home, file, stores: [], by, from: "" }, Date.now);
    await restoreAtStart(home, SILENT);
    giveUp(home, "a test");`,
    `${files}
    await restoreAtStart(home, SILENT);
    console.log(readFileSync(file, "utf8"));`,
  );
  assert.equal(said, "mode: rule # old\n");
});

test("secrets that weir makes", options, () => {
  const said = afterPowerCut(
    `import { spawn } from "node:child_process";
    import { mkdirSync, writeFileSync } from "node:fs";
    import { totpCommand } from "#cli/totp.ts";
    totpCommand(["/mnt/totp"], {});
    mkdirSync("/mnt/home", { mode: 0o700 });
    writeFileSync("/mnt/home/config.yaml", "external-controller: 0.0.0.0:0");
    const weir = spawn("bin/weir", ["-d", "/mnt/home"], { stdio: ["ignore", "pipe", "inherit"] });
    let printed = "";
    for await (const text of weir.stdout) if (/is running/.test((printed += text))) break;
    weir.kill("SIGKILL");`,
    `import { readFileSync } from "node:fs";
    for (const name of ["totp", "home/controller-secret"]) console.log(readFileSync("/mnt/" + name, "utf8").trim().length);`,
  );
  assert.equal(said, "32\n32\n");
});
