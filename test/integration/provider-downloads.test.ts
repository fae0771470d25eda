/** The ways in which a download fails. Each leaves the old nodes and the old rules in use, and the files as they were. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { replaceFile } from "#providers/replace-file.ts";
import { missing } from "../support/peer.ts";
import { openTcpOrigin, type Origin } from "../support/origin.ts";
import { NEW_NODES, NEW_RULES, OLD_NODES, OLD_RULES, openKit } from "../support/provider-kit.ts";
import { tmpfsFault } from "../support/tmpfs.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** What the server does once it has read a request; `head` is that request. */
type Answer = (socket: Socket, head: string) => void;

function openServer(answer: Answer): Promise<Origin> {
  return openTcpOrigin((socket) => {
    let head = "";
    socket.on("data", (chunk: Buffer) => {
      head += chunk.toString("latin1");
      if (head.includes("\r\n\r\n")) answer(socket, head);
    });
  });
}

const reply =
  (status: string, body: string | Uint8Array = "", headers = ""): Answer =>
  (socket) => {
    const bytes = Buffer.from(body);
    socket.end(
      Buffer.concat([
        Buffer.from(`HTTP/1.1 ${status}\r\n${headers}Content-Length: ${bytes.length}\r\n\r\n`),
        bytes,
      ]),
    );
  };

const LIST = `${NEW_RULES}${NEW_NODES}`; // both keys: each provider finds its own

const FAILURES: readonly (readonly [title: string, answer: Answer, why: RegExp])[] = [
  ["HTTP status 500", reply("500 Oops", LIST), /status 500/],
  ["HTTP status 404", reply("404 Gone", LIST), /status 404/],
  ["a 304 that was not asked for", reply("304 Not Modified"), /status 304/],
  [
    "a body that is cut",
    (socket) => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n${LIST}`),
    /./,
  ],
  [
    "a chunked body that is cut",
    (socket) => socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nproxi\r\n`),
    /./,
  ],
  [
    "a reset in mid-body",
    (socket) =>
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\npay", () => socket.resetAndDestroy()),
    /./,
  ],
  ["nothing at all", (socket) => void socket.end(), /./],
  ["no HTTP", (socket) => void socket.end("SSH-2.0-OpenSSH_9.2\r\n"), /./],
  ["a head without end", (socket) => void socket.write(`HTTP/1.1 200 OK\r\nX: ${"x".repeat(100_000)}`), /./],
  ["an empty body", reply("200 OK"), /nothing/],
  ["an HTML page", reply("200 OK", "<!DOCTYPE html><html><body>Log in</body></html>"), /HTML/],
  ["text of another kind", reply("200 OK", "hello\n"), /./],
  ["binary of another kind", reply("200 OK", Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 1, 2, 3])), /./],
  ["a list without the key", reply("200 OK", "items:\n  - a.example\n"), /./],
  ["YAML that is broken", reply("200 OK", "payload: [\nproxies: {"), /./],
  ["an alias bomb", reply("200 OK", bomb()), /./],
  ["more than the limit", reply("200 OK", `${LIST}#${"x".repeat(70_000)}`), /more than 65536 bytes/],
  [
    "more than the limit without a length",
    (socket) => void socket.end(`HTTP/1.1 200 OK\r\n\r\n${LIST}#${"x".repeat(70_000)}`),
    /more than 65536 bytes/,
  ],
  [
    "a small body that unpacks into much",
    reply("200 OK", gzipSync(`${LIST}#${"x".repeat(5_000_000)}`), "Content-Encoding: gzip\r\n"),
    /unpacked/,
  ],
  ["gzip that is none", reply("200 OK", LIST, "Content-Encoding: gzip\r\n"), /unpacked/],
  [
    "gzip that is cut",
    reply("200 OK", gzipSync(LIST).subarray(0, 30), "Content-Encoding: gzip\r\n"),
    /unpacked/,
  ],
  [
    "a packing that was not asked for",
    reply("200 OK", LIST, "Content-Encoding: compress\r\n"),
    /was not asked for/,
  ],
  ["a circle of redirects", reply("302 Found", "", "Location: /again\r\n"), /redirects more than 5 times/],
  [
    "a redirect to another scheme",
    reply("302 Found", "", "Location: file:///etc/passwd\r\n"),
    /redirects to nowhere/,
  ],
  ["a redirect without a place", reply("302 Found"), /redirects to nowhere/],
];

function bomb(): string {
  const levels = ["a: &a [x,x,x,x,x,x,x,x,x]"];
  for (let at = 0; at < 8; at++) {
    const [from, to] = ["abcdefghi"[at] as string, "abcdefghi"[at + 1] as string];
    levels.push(`${to}: &${to} [${Array.from({ length: 9 }, () => `*${from}`).join(",")}]`);
  }
  return `${levels.join("\n")}\npayload: *i\nproxies: *i\n`;
}

for (const [title, answer, why] of FAILURES)
  test(`${title}: the old stays in use`, async () => {
    await using origin = await openServer(answer);
    await using kit = await openKit(`http://127.0.0.1:${origin.port}/list`);
    await assert.rejects(kit.rules.resource.update(), (error: Error) => why.test(error.message));
    await assert.rejects(kit.nodes.resource.update());
    assertOld(kit);
  });

function assertOld(kit: Awaited<ReturnType<typeof openKit>>): void {
  assert.equal(kit.state(), "old old");
  assert.equal(readFileSync(join(kit.home, "rules.yaml"), "utf8"), OLD_RULES);
  assert.equal(readFileSync(join(kit.home, "nodes.yaml"), "utf8"), OLD_NODES);
  assert.deepEqual(readdirSync(kit.home).sort(), ["nodes.yaml", "rules.yaml"], "nothing is left beside them");
}

for (const [title, answer] of [
  ["silence", () => {}],
  [
    "a body that drips",
    (socket: Socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
      const timer = setInterval(() => socket.write("x"), 20);
      socket.once("close", () => clearInterval(timer));
    },
  ],
] as const)
  test(`${title}: given up in time, the old stays in use`, async () => {
    await using origin = await openServer(answer);
    await using kit = await openKit(`http://127.0.0.1:${origin.port}/list`, 300);
    await assert.rejects(kit.rules.resource.update(), /not complete in 300 ms/);
    await assert.rejects(kit.nodes.resource.update(), /not complete in 300 ms/);
    assertOld(kit);
  });

test("a refused connection: the old stays in use", async () => {
  const origin = await openServer(() => {});
  await origin[Symbol.asyncDispose]();
  await using kit = await openKit(`http://127.0.0.1:${origin.port}/list`);
  await assert.rejects(kit.rules.resource.update());
  await assert.rejects(kit.nodes.resource.update());
  assertOld(kit);
});

test("a list of no rules is a list, of no nodes it is a fault", async () => {
  await using origin = await openServer(reply("200 OK", "payload: []\nproxies: []\n"));
  await using kit = await openKit(`http://127.0.0.1:${origin.port}/list`);
  await kit.rules.resource.update();
  await assert.rejects(kit.nodes.resource.update(), /has no nodes/);
  assert.equal(kit.state(), " old");
});

test("one bad node costs itself, the update is used", async () => {
  await using origin = await openServer(
    reply("200 OK", `${NEW_NODES}  - {name: bad, type: vless, server: a.example}\n`),
  );
  await using kit = await openKit(`http://127.0.0.1:${origin.port}/list`);
  await kit.nodes.resource.update();
  assert.deepEqual(
    kit.nodes.nodes().map((node) => [node.name, kit.definitions.get(node)?.inert === null]),
    [
      ["new", true],
      ["bad", false],
    ],
  );
});

test("a file that became a link to outside, or a folder, is not written", async () => {
  await using origin = await openServer(reply("200 OK", LIST));
  const outside = mkdtempSync(join(tmpdir(), "weir-outside-"));
  await using kit = await openKit(`http://127.0.0.1:${origin.port}/list`);
  try {
    writeFileSync(join(outside, "target"), "untouched");
    rmSync(join(kit.home, "rules.yaml"));
    symlinkSync(join(outside, "target"), join(kit.home, "rules.yaml"));
    await assert.rejects(kit.rules.resource.update(), /not inside a safe path/);
    rmSync(join(kit.home, "nodes.yaml"));
    mkdirSync(join(kit.home, "nodes.yaml"));
    await assert.rejects(kit.nodes.resource.update());
    assert.equal(kit.state(), "old old");
    assert.equal(readFileSync(join(outside, "target"), "utf8"), "untouched");
  } finally {
    rmSync(outside, { recursive: true });
  }
});

test("what works: packed in three ways, redirected, unchanged by ETag", async () => {
  const packers = [
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
  ] as const;
  for (const [name, pack] of packers) {
    let conditional = 0;
    await using origin = await openServer((socket, head) => {
      if (head.startsWith("GET /list")) return reply("302 Found", "", "Location: /other\r\n")(socket, head);
      if (/^if-none-match: "v1"/im.test(head)) {
        conditional++;
        return reply("304 Not Modified")(socket, head);
      }
      return reply("200 OK", pack(LIST), `Content-Encoding: ${name}\r\nETag: "v1"\r\n`)(socket, head);
    });
    await using kit = await openKit(`http://127.0.0.1:${origin.port}/list`);
    for (const _round of [1, 2]) {
      await kit.rules.resource.update();
      await kit.nodes.resource.update();
      assert.equal(kit.state(), "new new");
    }
    assert.equal(conditional, 2);
    assert.equal(readFileSync(join(kit.home, "rules.yaml"), "utf8"), LIST);
  }
});

test("kill -9 in mid-write leaves the old or the new file, never half of one", async () => {
  const home = mkdtempSync(join(tmpdir(), "weir-kill-"));
  const path = join(home, "list");
  const size = 4 * 1024 * 1024;
  const program = `
    const { replaceFile } = await import(${JSON.stringify(new URL("../../src/providers/replace-file.ts", import.meta.url).href)});
    for (let round = 0; ; round++) {
      await replaceFile(${JSON.stringify(path)}, Buffer.alloc(${size}, String(round % 10)));
      if (round === 0) console.log("first");
    }`;
  try {
    for (let round = 0; round < 6; round++) {
      const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(child.stdout, "data");
      await new Promise((resolve) => setTimeout(resolve, 10 + round * 7));
      child.kill("SIGKILL");
      await once(child, "close");
      const bytes = readFileSync(path);
      assert.equal(bytes.length, size);
      assert.ok(bytes.equals(Buffer.alloc(size, bytes[0])), "all of one round");
    }
  } finally {
    rmSync(home, { recursive: true });
  }
});

test("what kill -9 has left beside a file goes with a later write, a write that is on its way stays", async () => {
  const home = mkdtempSync(join(tmpdir(), "weir-stale-"));
  try {
    const names = [
      ".list.0123456789ab.tmp",
      ".list.ba9876543210.tmp",
      ".list.ffffffffffff.tmp",
      ".list.notes.tmp",
    ];
    const ages = [3600, -3600, 10, 3600];
    for (const [at, name] of names.entries()) {
      writeFileSync(join(home, name), "half of a li");
      const changedAt = Date.now() / 1000 - (ages[at] as number);
      utimesSync(join(home, name), changedAt, changedAt);
    }
    await replaceFile(join(home, "list"), Buffer.from("new"));
    assert.deepEqual(readdirSync(home).sort(), [".list.ffffffffffff.tmp", ".list.notes.tmp", "list"]);
  } finally {
    rmSync(home, { recursive: true });
  }
});

test(
  "a folder that cannot be flushed has the new file, and the new file is in use",
  { skip: missing("strace") },
  () => {
    const home = mkdtempSync(join(tmpdir(), "weir-folder-"));
    const program = `
    import { replaceFile } from "#providers/replace-file.ts";
    console.log(await replaceFile(process.env.FILE, Buffer.from("new")).then(() => "written", (error) => error.message));`;
    try {
      const said = execFileSync(
        "strace",
        // The file is flushed first, then its folder, as some shared folders of virtual machines refuse it.
        ["-f", "-o", "/dev/null", "-e", "inject=fsync:error=EINVAL:when=2", process.execPath, "--input-type=module", "-e", program], // prettier-ignore
        {
          encoding: "utf8",
          cwd: root,
          env: { ...process.env, FILE: join(home, "list"), UV_THREADPOOL_SIZE: "1" },
        },
      );
      assert.equal(said.trim(), "written");
      assert.equal(readFileSync(join(home, "list"), "utf8"), "new");
    } finally {
      rmSync(home, { recursive: true });
    }
  },
);

test("a full disk leaves the old file and nothing beside it", { skip: tmpfsFault() }, () => {
  const program = `
    import { readFileSync, readdirSync, writeFileSync } from "node:fs";
    const { replaceFile } = await import(${JSON.stringify(new URL("../../src/providers/replace-file.ts", import.meta.url).href)});
    writeFileSync("/mnt/list", "old");
    const failure = await replaceFile("/mnt/list", Buffer.alloc(1 << 20)).then(() => "written", (error) => error.code);
    console.log(failure, readFileSync("/mnt/list", "utf8"), readdirSync("/mnt").join());`;
  const command = `mount -t tmpfs -o size=64k tmpfs /mnt && exec "$0" --disable-warning=ExperimentalWarning --input-type=module -e "$1"`;
  const said = execFileSync("unshare", ["-rm", "sh", "-c", command, process.execPath, program], {
    encoding: "utf8",
    cwd: root,
  });
  assert.equal(said.trim(), "ENOSPC old list");
});
