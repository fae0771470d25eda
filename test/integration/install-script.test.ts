/** deploy/install.sh unpacks what has the sum that it should have, from a file or an address, and nothing else. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { tarGz } from "../support/archives.ts";

const exec = promisify(execFile);
const script = join(dirname(dirname(import.meta.dirname)), "deploy", "install.sh");
const skip = process.platform === "win32" ? "a script for sh" : false;

/** An archive as the build's, but for a program that only says its version. */
function archiveOf(version: string, ends = 0): { readonly name: string; readonly bytes: Buffer } {
  const base = `weir-${version}-${process.platform}-${process.arch}`;
  const program = `#!/bin/sh\necho weir ${version}\nexit ${ends}\n`;
  const bytes = tarGz([
    { name: `${base}/weir`, text: program, mode: 0o100755 },
    { name: `${base}/version.txt`, text: `${version}\n` },
  ]);
  return { name: `${base}.tar.gz`, bytes };
}

const sumOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

function folderFor(t: TestContext): { readonly from: string; readonly prefix: string } {
  const base = mkdtempSync(join(tmpdir(), "weir-install-"));
  t.after(() => rmSync(base, { recursive: true }));
  const [from, prefix] = [join(base, "from"), join(base, "prefix")];
  mkdirSync(from);
  return { from, prefix };
}

function put(from: string, { name, bytes }: ReturnType<typeof archiveOf>, sum = sumOf(bytes)): string {
  writeFileSync(join(from, name), bytes);
  writeFileSync(join(from, "SHA256SUMS"), `${"0".repeat(64)}  another.tar.gz\n${sum}  ${name}\n`);
  return join(from, name);
}

const install = (...args: readonly string[]) => exec("sh", [script, ...args]);

test("an archive is installed, and a later one takes its place", { skip }, async (t) => {
  const { from, prefix } = folderFor(t);
  for (const version of ["1-a", "2-b", "2-b", "3-c"]) {
    const { stdout } = await install("--prefix", prefix, put(from, archiveOf(version)));
    assert.equal(stdout, `installed: weir ${version}\nin ${prefix}/weir, as ${prefix}/bin/weir\n`);
    assert.equal((await exec(join(prefix, "bin/weir"))).stdout, `weir ${version}\n`);
  }
  assert.deepEqual(readdirSync(prefix).sort(), ["bin", "weir", "weir-2-b", "weir-3-c"]);
  assert.equal(readlinkSync(join(prefix, "weir")), "weir-3-c");
});

test("the folder of an installer that made no link gives way to one", { skip }, async (t) => {
  const { from, prefix } = folderFor(t);
  await install("--prefix", prefix, put(from, archiveOf("1-a")));
  rmSync(join(prefix, "weir"));
  renameSync(join(prefix, "weir-1-a"), join(prefix, "weir"));
  await install("--prefix", prefix, put(from, archiveOf("2-b")));
  assert.equal((await exec(join(prefix, "bin/weir"))).stdout, "weir 2-b\n");
  assert.deepEqual(readdirSync(prefix).sort(), ["bin", "weir", "weir-2-b"]);
});

test("an archive and its sums are fetched from an address", { skip }, async (t) => {
  const { from, prefix } = folderFor(t);
  const archive = archiveOf("3-c");
  put(from, archive);
  const server = createServer(({ url = "" }, response) => {
    const file = join(from, url.slice(1));
    if (existsSync(file)) response.end(readFileSync(file));
    else response.writeHead(404).end("nothing here");
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await install("--prefix", prefix, `${origin}/${archive.name}`);
  assert.equal((await exec(join(prefix, "bin/weir"))).stdout, "weir 3-c\n");
  const absent = archive.name.replace("3-c", "4-d");
  await assert.rejects(install("--prefix", prefix, `${origin}/${absent}`), /cannot fetch http:.*4-d/);
  assert.equal((await exec(join(prefix, "bin/weir"))).stdout, "weir 3-c\n");
});

test("what has another sum, or none, or does not run, changes nothing", { skip }, async (t) => {
  const { from, prefix } = folderFor(t);
  const bad = sumOf(Buffer.from("something else"));
  const good = archiveOf("1-a");
  await install("--prefix", prefix, put(from, good));
  const refused = (file: string, reason: RegExp) =>
    assert.rejects(install("--prefix", prefix, file), (error: Error & { stderr: string }) => {
      assert.match(error.stderr, reason);
      return true;
    });
  await refused(
    put(from, archiveOf("2-b"), bad),
    new RegExp(`has the sum [0-9a-f]{64}, and .* says ${bad}: nothing`),
  );
  await refused(put(from, archiveOf("2-b", 1)), /does not run on this machine: nothing was installed/);
  const torn = { ...archiveOf("2-b"), bytes: archiveOf("2-b").bytes.subarray(0, 60) };
  await refused(put(from, torn), /cannot be unpacked: nothing was installed/);
  await refused(put(from, { ...good, name: "weir-1-a-plan9-mips.tar.gz" }), /is for another platform/);
  writeFileSync(join(from, "SHA256SUMS"), "");
  await refused(join(from, good.name), /SHA256SUMS has no sum of weir-1-a/);
  assert.equal((await exec(join(prefix, "bin/weir"))).stdout, "weir 1-a\n");
  assert.deepEqual(readdirSync(prefix).sort(), ["bin", "weir", "weir-1-a"]);
});

test("a folder of that name that is no weir stays", { skip }, async (t) => {
  const { from, prefix } = folderFor(t);
  mkdirSync(join(prefix, "weir"), { recursive: true });
  writeFileSync(join(prefix, "weir", "letters"), "mine");
  await assert.rejects(install("--prefix", prefix, put(from, archiveOf("1-a"))), /is there and is no weir/);
  assert.deepEqual(readdirSync(join(prefix, "weir")), ["letters"]);
});
