/** The commands of the pages for newcomers, as they stand there. Blocks that cannot be run say so in their first line. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";

const root = dirname(dirname(import.meta.dirname));
const NOT_RUN = /^# not run by a test[^\n]*: \S/;

/** What a reader types, in order; what a test cannot run is left out. */
function commandsOf(page: string): readonly string[] {
  const text = readFileSync(join(root, "docs", page), "utf8");
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
  assert.ok(blocks.length > 0, page);
  return blocks.filter((block) => !NOT_RUN.test(block));
}

function shell(script: string, folder: string): string {
  const env = { ...process.env, PATH: `${join(root, "bin")}:${process.env["PATH"] ?? ""}` };
  return execFileSync("bash", ["-euo", "pipefail", "-c", script], { cwd: folder, env, encoding: "utf8" });
}

function folderFor(use: (folder: string) => Promise<void> | void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "weir-first-"));
  return Promise.resolve(use(folder)).finally(() => rmSync(folder, { recursive: true, force: true }));
}

test("first-server.md: the server is configured, starts, and has a link that clients read", () =>
  folderFor(async (folder) => {
    const [edge, controller] = (await freePorts(2)) as [number, number];
    const commands = commandsOf("first-server.md");
    assert.equal(commands.length, 3);
    const said = commands
      .map((block) =>
        shell(
          block.replace("port: 443", `port: ${edge}`).replace("127.0.0.1:9090", `127.0.0.1:${controller}`),
          folder,
        ),
      )
      .join("");
    assert.match(said, /test is successful/);
    const [link = ""] = /^vless:\/\/\S+$/m.exec(said) ?? [];
    assert.match(
      link,
      new RegExp(`@203\\.0\\.113\\.7:${edge}\\?.*flow=xtls-rprx-vision&security=reality.*pbk=`),
    );
    assert.match(shell(`weir link '${link}'`, folder), /reality-opts:/);
    await using core = await startCore(readFileSync(join(folder, "config.yaml"), "utf8"));
    assert.equal(await core.port("edge"), edge);
  }));

test("from-mihomo.md and troubleshooting.md: a profile is checked, explained and looked at", () =>
  folderFor((folder) => {
    const profile =
      'mixed-port: 0\nproxies: [{ name: n, type: direct }]\nrules: ["DOMAIN-SUFFIX,example.org,n", "MATCH,DIRECT"]\n';
    for (const file of ["profile.yaml", "config.yaml"]) writeFileSync(join(folder, file), profile);
    const said = ["from-mihomo.md", "troubleshooting.md"]
      .flatMap(commandsOf)
      .map((block) => shell(block, folder));
    assert.match(said.join("\n"), /test is successful.*DomainSuffix.*example\.org.*test is successful/s);
  }));

test("from-3x-ui.md: its commands are those of import.md, which has a test of its own", () => {
  assert.deepEqual(commandsOf("from-3x-ui.md"), []);
  const [all = ""] = /```sh\n(.*?)```/s.exec(readFileSync(join(root, "docs", "import.md"), "utf8")) ?? [];
  const text = readFileSync(join(root, "docs", "from-3x-ui.md"), "utf8");
  for (const line of text.match(/^weir .*$/gm) ?? []) assert.ok(all.includes(line.trim()), line);
});
