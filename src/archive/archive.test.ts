import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { ConfigError, ProtocolError } from "#core/errors.ts";
import { tarGz, zip, type Member } from "../../test/support/archives.ts";
import { skipLarge } from "../../test/support/runs.ts";
import { readArchive } from "./archive.ts";
import type { ArchiveEntry } from "./entry-path.ts";
import { installPages } from "./install.ts";

const LIMITS = { maxBytes: 4 * 1024 * 1024, maxEntries: 50, maxRatio: 100 };
const KINDS = [
  ["zip", zip],
  ["tar.gz", tarGz],
] as const;
const LARGE = new Set(["contents beyond the limit"]);
const PAGE: Member = { name: "site-main/index.html", text: "<title>new</title>" };

let top = "";
before(async () => (top = await mkdtemp(join(tmpdir(), "weir-archive-"))));
after(() => rm(top, { recursive: true }));

async function read(archive: Uint8Array): Promise<ArchiveEntry[]> {
  return Array.fromAsync(readArchive(archive, LIMITS));
}

async function filesBelow(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = files.map(
    async (file) => [file.slice(folder.length + 1), await readFile(file, "utf8")] as const,
  );
  return Object.fromEntries(await Promise.all(texts));
}

for (const [kind, make] of KINDS) {
  test(`${kind}: files and folders, names in UTF-8, long ones too`, async () => {
    const long = `${"d".repeat(90)}/${"f".repeat(120)}.js`;
    const archive = make([
      { name: "./", folder: true },
      { name: "a/", folder: true },
      { name: "a/ü 中.txt", text: "hello" },
      { name: long, text: "x".repeat(5000) },
      { name: "empty", text: "" },
    ]);
    const entries = await read(archive);
    assert.deepEqual(
      entries.map(({ path, bytes }) => [
        path.join("/"),
        bytes === null ? null : Buffer.from(bytes).toString(),
      ]),
      [
        ["a", null],
        ["a/ü 中.txt", "hello"],
        [long, "x".repeat(5000)],
        ["empty", ""],
      ],
    );
  });

  const refused: readonly (readonly [string, readonly Member[], RegExp])[] = [
    ["a way up", [{ name: "../x", text: "" }], /leads out/],
    ["a way up in the middle", [{ name: "a/../../x", text: "" }], /leads out/],
    ["a way up that stays inside", [{ name: "a/../x", text: "" }], /leads out/],
    ["a folder above", [{ name: "../", folder: true }], /leads out/],
    ["an absolute name", [{ name: "/etc/passwd", text: "" }], /absolute/],
    ["a drive", [{ name: "C:/x", text: "" }], /not portable/],
    ["a drive without a slash", [{ name: "C:x", text: "" }], /not portable/],
    ["a backslash", [{ name: "..\\x", text: "" }], /not portable/],
    ["a stream", [{ name: "index.html::$DATA", text: "" }], /not portable/],
    ["a line break", [{ name: "a\nb", text: "" }], /not portable/],
    ["a device name", [{ name: "a/NUL.txt", text: "" }], /not portable/],
    ["a trailing dot", [{ name: "a./x", text: "" }], /not portable/],
    ["a segment of 256 bytes", [{ name: "n".repeat(256), text: "" }], /too long/],
    ["33 folders deep", [{ name: "d/".repeat(33), folder: true }], /deeper/],
    ["a symbolic link", [{ name: "l", text: "/etc/passwd", mode: 0o120777 }], /link or a device/],
    ["a device", [{ name: "d", text: "", mode: 0o020666 }], /link or a device/],
    ["a fifo", [{ name: "f", text: "", mode: 0o010666 }], /link or a device/],
    [
      "51 entries",
      Array.from({ length: 51 }, (_, at) => ({ name: `f${at}`, text: "" })),
      /more than 50 entries/,
    ],
    ["a bomb", [{ name: "bomb", text: "\0".repeat(3 * 1024 * 1024) }], /too large|larger than allowed/],
    ["contents beyond the limit", [{ name: "big", bytes: noise(4.1 * 1024 * 1024) }], /larger than allowed/],
  ];
  for (const [what, members, why] of refused)
    test(`${kind}: ${what} is refused`, { skip: LARGE.has(what) && skipLarge }, () =>
      assert.rejects(read(make(members)), matches(why)),
    );

  test(`${kind}: every truncation is refused`, async () => {
    const archive = make([PAGE, { name: "site-main/a.js", text: "let a;" }]);
    for (let length = 0; length < archive.length; length++)
      await assert.rejects(read(archive.subarray(0, length)), ProtocolError, `${length} bytes`);
  });

  test(`${kind}: damage throws ProtocolError or goes unnoticed, never anything else`, async () => {
    const archive = make([PAGE, { name: "site-main/a.js", text: "let a;" }]);
    const spot = fc.nat(archive.length - 1);
    await fc.assert(
      fc.asyncProperty(spot, fc.integer({ min: 1, max: 255 }), async (at, change) => {
        const damaged = Buffer.from(archive);
        damaged[at] = (damaged[at] as number) ^ change;
        await read(damaged).catch((error: unknown) =>
          assert.ok(error instanceof ProtocolError, String(error)),
        );
      }),
    );
  });

  test(`${kind}: the same name twice, or a file where a folder is, is refused and nothing is left`, async () => {
    const folder = join(top, `${kind}-twice`);
    for (const members of [
      [PAGE, PAGE],
      [
        { name: "a", text: "" },
        { name: "a/b", text: "" },
      ],
    ])
      await assert.rejects(installPages(make(members), folder, LIMITS), matches(/twice/));
    assert.ok(!(await readdir(top)).some((name) => name.includes(`${kind}-twice`)));
  });

  test(`${kind}: pages take the place of older ones, the top folder is left out`, async () => {
    const folder = join(top, kind, "deep", "ui");
    await installPages(make([{ name: "site-main/", folder: true }, PAGE]), folder, LIMITS);
    assert.deepEqual(await filesBelow(folder), { ".weir-dashboard": "", "index.html": "<title>new</title>" });
    const next = make([
      { name: "index.html", text: "2" },
      { name: "assets/a.js", text: "3" },
    ]);
    await installPages(next, folder, LIMITS);
    assert.deepEqual(await filesBelow(folder), {
      ".weir-dashboard": "",
      "index.html": "2",
      [join("assets", "a.js")]: "3",
    });
    await assert.rejects(
      installPages(make([{ name: "x.txt", text: "" }]), folder, LIMITS),
      matches(/no index.html/),
    );
    assert.deepEqual(await filesBelow(folder), {
      ".weir-dashboard": "",
      "index.html": "2",
      [join("assets", "a.js")]: "3",
    });
    assert.deepEqual(await readdir(join(top, kind, "deep")), ["ui"]);
  });
}

test("random bytes, with and without a magic number", async () => {
  const magic = fc.constantFrom([], [0x50, 0x4b, 3, 4], [0x1f, 0x8b, 8, 0]);
  await fc.assert(
    fc.asyncProperty(magic, fc.uint8Array({ maxLength: 400 }), async (start, rest) => {
      await assert.rejects(read(Buffer.from([...start, ...rest])), ProtocolError);
    }),
  );
});

test("pages that a killed run had moved out of the way come back, whatever becomes of the next one", async () => {
  const folder = join(top, "killed", "ui");
  await installPages(zip([PAGE]), folder, LIMITS);
  const pages = await filesBelow(folder);
  const work = join(top, "killed", ".ui.weir-new");
  await mkdir(join(work, "fresh"), { recursive: true });
  await rename(folder, join(work, "old")); // the first of two renames; the second one has not come
  await assert.rejects(installPages(zip([{ name: "x.txt", text: "" }]), folder, LIMITS), ProtocolError);
  assert.deepEqual(await filesBelow(folder), pages);
  assert.deepEqual(await readdir(join(top, "killed")), ["ui"]);
});

test("a folder that holds something else than pages stays", async () => {
  const folder = join(top, "documents");
  await mkdir(folder);
  await writeFile(join(folder, "letter.txt"), "dear");
  await assert.rejects(installPages(zip([PAGE]), folder, LIMITS), ConfigError);
  assert.deepEqual(await filesBelow(folder), { "letter.txt": "dear" });
});

function matches(why: RegExp) {
  return (error: unknown) => error instanceof ProtocolError && why.test(error.message);
}

/** Does not compress, and is the same every time. */
function noise(sizeBytes: number): Uint8Array {
  const bytes = new Uint8Array(sizeBytes);
  let state = 1;
  for (let at = 0; at < bytes.length; at++) bytes[at] = (state = (state * 48_271) % 2_147_483_647) >>> 8;
  return bytes;
}
