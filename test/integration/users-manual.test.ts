/** Every command of docs/users.md, as it stands there, against the program with the configuration that stands there. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";

const run = promisify(execFile);
const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const MANUAL = readFileSync(join(ROOT, "docs", "users.md"), "utf8");
const SECRET = "32 bytes or more, not the Controller's";

const blocks = (language: string): readonly string[] =>
  [...MANUAL.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(([, text]) => text ?? "");

/** What has to be there for them; the manual says so. */
const missing = ["bash", "curl", "jq"].filter(
  (name) => !(process.env["PATH"] ?? "").split(":").some((folder) => existsSync(join(folder, name))),
);
const skip =
  missing.length === 0 ? false : `SKIP commands of the manual: ${missing.join(", ")} not installed`;

async function bash(script: string, folder: string): Promise<string> {
  const env = { ...process.env, SECRET, PATH: `${join(ROOT, "bin")}:${process.env["PATH"] ?? ""}` };
  const { stdout } = await run("bash", ["-euo", "pipefail", "-c", script], { cwd: folder, env });
  return stdout;
}

test(
  "docs/users.md: its configuration starts, and each of its commands does what is said",
  { skip },
  async () => {
    const [controller] = (await freePorts(1)) as [number];
    const [config = ""] = blocks("yaml");
    const commands = blocks("sh");
    assert.equal(commands.length, 7);
    const [make = "", change = "", end = "", limit = "", write = "", files = "", accept = ""] = commands.map(
      (text) => text.replaceAll("127.0.0.1:9090", `127.0.0.1:${controller}`),
    );
    assert.match(limit, /quota/);
    assert.match(write, /label/);
    const core = await startCore(`${config}
external-controller: 127.0.0.1:${controller}
listeners:
  - { name: edge, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [] }
rules: ["MATCH,DIRECT"]
`);
    try {
      const show = '\ncurl -fsS -H "$auth" "$api/users/$id"';
      const said = await bash(
        [make, change, limit, write, show, "\necho", end, show.replace("-fsS", "-sS")].join("\n"),
        core.home,
      );
      assert.match(said, /^vless:\/\/[0-9a-f-]{36}@proxy\.example\.com:\d+\?/m);
      assert.match(said, /alice\ttrue\t0\t0$/m);
      assert.match(said, /"enabled":false/);
      assert.match(said, /"traffic_generation":2/);
      assert.match(said, /"total_bytes":107374182400,"reset":"month"/);
      assert.match(said, /"ip_limit":3/);
      assert.match(said, /"note":"paid until May","labels":\["family","paid"\]/);
      assert.match(said, /\}alice$/m, "found by the label");
      assert.match(said, /\{"(message|error)":.*$/, "the user is gone in the end");
      await bash(make, core.home);
      await core.stop();
      await bash(files, core.home);
      await bash(accept, core.home);
      const document = JSON.parse(readFileSync(join(core.home, "users.json"), "utf8")) as {
        listeners: object;
      };
      assert.ok("edge" in document.listeners);
      assert.ok(existsSync(join(core.home, "other-state.db")));
    } finally {
      await core[Symbol.asyncDispose]();
    }
  },
);
