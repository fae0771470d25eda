/** An update comes whole, signed and newer, or nothing on the disk has changed. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { findInstallation, type Installation } from "#update/installation.ts";
import { lookForUpdate, refuseOld, update, type UpdateEnv } from "#update/update.ts";
import { tarGz, type Member } from "../support/archives.ts";
import { archiveOf, installed, membersOf, placeBuild, PLATFORM, ReleaseFolder } from "../support/release.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "win32" ? "programs are scripts for sh" : false;
const FIRST = "1.0.0-20260101-aaaa";
const NEXT = "1.0.1-20260201-bbbb";
const FOREVER = new AbortController().signal;
const top = `weir-${NEXT}-${PLATFORM}`;

/** As `weir update` does it. */
async function run(
  release: ReleaseFolder,
  at: Installation,
  more: Partial<UpdateEnv> & { readonly publicKey?: string; readonly allowOlder?: boolean } = {},
): Promise<readonly string[]> {
  const said: string[] = [];
  const source = await release.source(more.publicKey);
  const offered = await lookForUpdate(source, at.version, FOREVER);
  refuseOld(offered, at.version, more.allowOlder === true);
  const say = (text: string): void => void said.push(text);
  await update(
    offered,
    { source, installation: at, checkArgs: ["-t"], takeOver: null, say, ...more },
    FOREVER,
  );
  return said;
}

/** Every file below the folder with its contents, and every link with its target. */
function pictureOf({ parent }: Installation): readonly string[] {
  const paths = readdirSync(parent, { recursive: true, withFileTypes: true });
  return paths
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const what = entry.isSymbolicLink()
        ? readlinkSync(path)
        : entry.isFile()
          ? `${statSync(path).ino} ${readFileSync(path, "latin1")}`
          : "";
      return `${path} ${what}`;
    })
    .sort();
}

async function refused(
  release: ReleaseFolder,
  at: Installation,
  reason: RegExp,
  more: Parameters<typeof run>[2] = {},
): Promise<void> {
  const before = pictureOf(at);
  await assert.rejects(run(release, at, more), reason);
  assert.deepEqual(pictureOf(at), before, `nothing has changed: ${reason}`);
}

test("a newer version takes its place beside the one that runs, and older ones go", { skip }, async () => {
  await using release = await ReleaseFolder.open();
  using at = installed(FIRST);
  placeBuild(join(at.parent, "weir-0.9.0"), "0.9.0");
  placeBuild(join(at.parent, "weir-mine"), "0.8.0"); // another name than its version's: not an installer's
  release.publish(NEXT, archiveOf(NEXT));
  const asked: string[] = [];
  const takeOver = async (program: string): Promise<null> => {
    asked.push(`${program} ${readlinkSync(at.link)}`);
    return null;
  };
  await run(release, at, { takeOver });
  assert.deepEqual(asked, [`${at.link}/weir weir-${NEXT}`]);
  assert.deepEqual(readdirSync(at.parent).sort(), ["weir", `weir-${FIRST}`, `weir-${NEXT}`, "weir-mine"]);
  assert.equal(execFileSync(join(at.link, "weir"), ["-v"], { encoding: "utf8" }), `Weir Meta ${NEXT} here\n`);
  assert.equal(statSync(join(at.link, "lib")).mode & 0o777, 0o755);
  assert.equal(statSync(join(at.link, "lib", "part.cjs")).mode & 0o777, 0o644);
});

test("what is changed, by another key, or no release of weir is refused", { skip }, async () => {
  await using release = await ReleaseFolder.open();
  await using other = await ReleaseFolder.open();
  using at = installed(FIRST);
  const archive = archiveOf(NEXT);
  release.publish(NEXT, archive);
  await refused(release, at, /not by the key in update\.public-key/, { publicKey: other.publicKey });

  const manifest = Buffer.from(release.files.get("/r/manifest.json") as Uint8Array);
  for (const spot of [0, 30, manifest.length - 1]) {
    const changed = Buffer.from(manifest);
    changed[spot] = (changed[spot] as number) ^ 1;
    release.files.set("/r/manifest.json", changed);
    await refused(release, at, /another key, or a changed manifest/);
  }
  release.files.set("/r/manifest.json", manifest);
  const signature = release.files.get("/r/manifest.json.sig") as Uint8Array;
  release.files.set("/r/manifest.json.sig", signature.subarray(0, 63));
  await refused(release, at, /the signature has 63 bytes in place of 64/);
  release.files.delete("/r/manifest.json.sig");
  await refused(release, at, /HTTP status 404/);

  for (const text of [
    "not json",
    "{}",
    JSON.stringify({ format: "another-release-1", version: NEXT, files: {} }),
  ]) {
    release.sign(text);
    await refused(release, at, /the manifest is signed and (is no JSON|cannot be read: format)/);
  }
  release.publish("../../etc", archive);
  await refused(release, at, /cannot be read: version/);
  release.publish(NEXT, archive, {
    files: { [PLATFORM]: { name: "../a.tar.gz", size: 9, sha256: "0".repeat(64) } },
  });
  await refused(release, at, /cannot be read: files/);
  release.publish(NEXT, archive, { files: {} });
  await refused(release, at, new RegExp(`has nothing for ${PLATFORM}, only for no platform`));
});

test("what is older, or may be, is refused, unless that is meant", { skip }, async () => {
  await using release = await ReleaseFolder.open();
  using at = installed(FIRST);
  for (const [version, reason] of [
    [FIRST, /is the version that runs: there is nothing newer/],
    ["1.0.0-20251231-ffff", /is older than .*-allow-older takes it/],
    ["0.9.9", /is older than/],
    ["1.0.0-20260101-bbbb", /cannot be told to be newer than/],
    ["nightly", /cannot be told to be newer than/],
  ] as const) {
    release.publish(version, archiveOf(version));
    await refused(release, at, reason);
  }
  const older = "1.0.0-20251231-ffff";
  release.publish(older, archiveOf(older));
  await run(release, at, { allowOlder: true });
  assert.equal(readlinkSync(at.link), `weir-${older}`);
});

test("an archive with another size or sum than the manifest says is refused", { skip }, async () => {
  await using release = await ReleaseFolder.open();
  using at = installed(FIRST);
  const archive = archiveOf(NEXT);
  const path = `/r/weir-${NEXT}-${PLATFORM}.tar.gz`;
  release.publish(NEXT, archive);
  const changed = Buffer.from(archive);
  changed[40] = (changed[40] as number) ^ 1;
  release.files.set(path, changed);
  await refused(release, at, /has the sum [0-9a-f]{64}, and the manifest says [0-9a-f]{64}/);
  release.files.set(path, archive.subarray(0, -1));
  await refused(release, at, /has \d+ bytes, and the manifest says \d+/);
  let sent = 0;
  release.files.set(path, (_, response) => {
    response.on("error", () => {});
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65536))) sent += 65536;
    };
    response.on("drain", more);
    more();
  });
  await refused(release, at, /is larger than the \d+ bytes that the manifest says/);
  assert.ok(sent < 64 * 1024 * 1024, `${sent} bytes of an endless body were taken`);
});

test("a slow server, one that sends too much, and one that leads inside are refused", { skip }, async () => {
  await using release = await ReleaseFolder.open();
  await using inside = await ReleaseFolder.open();
  using at = installed(FIRST);
  release.publish(NEXT, archiveOf(NEXT));
  const path = `/r/weir-${NEXT}-${PLATFORM}.tar.gz`;
  const good = release.files.get("/r/manifest.json") as Uint8Array;
  release.files.set(path, (_, response) => void response.writeHead(200).write("a"));
  await refused(release, at, /not complete in 2000 ms/);
  release.files.set("/r/manifest.json", (_, response) => void response.write(good.subarray(0, 9)));
  await refused(release, at, /not complete in 2000 ms/);
  release.files.set("/r/manifest.json", Buffer.alloc(65 * 1024));
  await refused(release, at, /sent more than 65536 bytes/);
  inside.publish(NEXT, archiveOf(NEXT));
  const location = `${inside.url}/manifest.json`;
  release.files.set("/r/manifest.json", (_, response) => void response.writeHead(302, { location }).end());
  await refused(release, at, /no address of the public internet; update\.url may redirect/);
});

const HOSTILE: readonly (readonly [what: string, members: readonly Member[], reason: RegExp])[] = [
  ["a way up", [{ name: `${top}/../../evil`, text: "x" }], /leads out of the archive/],
  ["an absolute name", [{ name: "/tmp/weir-evil", text: "x" }], /absolute name/],
  ["a link", [{ name: `${top}/lib/out`, text: "/etc", mode: 0o120777 }], /a link or a device/],
  ["a file twice", [{ name: `${top}/weir`, text: "x" }], /holds weir twice/],
  ["another folder at the top", [{ name: "other/weir", text: "x" }], /has other beside the folder/],
];

test("an archive that leads out of its folder is refused, signed as it is", { skip }, async () => {
  await using release = await ReleaseFolder.open();
  using at = installed(FIRST);
  for (const [, members, reason] of HOSTILE) {
    release.publish(NEXT, archiveOf(NEXT, members));
    await refused(release, at, reason);
  }
  assert.ok(!existsSync("/tmp/weir-evil"));
  const another = membersOf("9.9.9").map((each) => ({ ...each, name: each.name.replace("9.9.9", NEXT) }));
  release.publish(NEXT, tarGz(another));
  await refused(release, at, /version\.txt of the archive does not say/);
  release.publish(NEXT, archiveOf(NEXT, [], "echo line 3: no such key; exit 1"));
  await refused(release, at, /does not take the configuration: line 3: no such key/);
});

test("a version that does not take over gives way to the one before", { skip }, async () => {
  await using release = await ReleaseFolder.open();
  using at = installed(FIRST);
  release.publish(NEXT, archiveOf(NEXT));
  const takeOver = async (): Promise<string> => "a port is taken";
  await refused(release, at, /did not take over, .* goes on: a port is taken/, { takeOver });
  await refused(release, at, /goes on: it has crashed/, {
    takeOver: () => Promise.reject(new Error("it has crashed")),
  });
  await run(release, at);
  assert.equal(readlinkSync(at.link), `weir-${NEXT}`);
});

test("what is there under the names of an update, and is no weir, stays", { skip }, async () => {
  await using release = await ReleaseFolder.open();
  using at = installed(FIRST);
  release.publish(NEXT, archiveOf(NEXT));
  mkdirSync(join(at.parent, `weir-${NEXT}`));
  writeFileSync(join(at.parent, `weir-${NEXT}`, "letters"), "mine");
  await refused(release, at, /is there and is no weir .*: move it away/);
});

test("an update that was killed leaves what the next one removes", { skip }, async () => {
  await using release = await ReleaseFolder.open();
  using at = installed(FIRST);
  release.publish(NEXT, archiveOf(NEXT));
  const path = `/r/weir-${NEXT}-${PLATFORM}.tar.gz`;
  const archive = release.files.get(path) as Uint8Array;
  release.files.set(path, (_, response) => void response.write(archive.subarray(0, 20)));
  const child = fileURLToPath(new URL("../support/update-child.ts", import.meta.url));
  const args = [...process.execArgv, child, release.url, release.publicKey, at.folder, FIRST];
  const killed = spawn(process.execPath, args, { stdio: "inherit" });
  const left = () => readdirSync(at.parent).filter((name) => name.startsWith(".weir-update-"));
  await until("it downloads", () =>
    left().some((name) => existsSync(join(at.parent, name, "archive.tar.gz"))),
  );
  release.files.set(path, archive);
  await assert.rejects(run(release, at), new RegExp(`process ${killed.pid} is making an update already`));
  const ended = once(killed, "exit");
  killed.kill("SIGKILL");
  await ended;
  assert.equal(left().length, 1);
  placeBuild(join(at.parent, `weir-${NEXT}`), NEXT); // had it been killed later
  await run(release, at);
  assert.deepEqual(readdirSync(at.parent).sort(), ["weir", `weir-${FIRST}`, `weir-${NEXT}`]);
  assert.ok(existsSync(join(at.link, "lib", "part.cjs")), "the new one, not what was left");
});

test("other installations are told what to do instead", { skip }, () => {
  using at = installed(FIRST);
  assert.throws(() => findInstallation(at.folder, "dev"), /this is a checkout: git pull/);
  const plain = join(at.parent, "plain");
  placeBuild(plain, FIRST);
  assert.throws(() => findInstallation(plain, FIRST), /is in force, and this is|was not put there by deploy/);
  const elsewhere = join(at.parent, "elsewhere");
  mkdirSync(elsewhere);
  placeBuild(join(elsewhere, "weir"), FIRST);
  assert.throws(
    () => findInstallation(join(elsewhere, "weir"), FIRST),
    /was not put there by deploy\/install\.sh/,
  );
  symlinkSync(at.folder, join(elsewhere, "link"));
  assert.equal(findInstallation(join(elsewhere, "link"), FIRST).folder, at.folder, "by its real path");
});
