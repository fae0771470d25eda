/** curl and proxychains4 as the judges of the http, socks and mixed listeners. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { DialError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import { http } from "#protocols/http/index.ts";
import { mixed } from "#protocols/mixed/index.ts";
import { socks } from "#protocols/socks/index.ts";
import { makeCertificate } from "../support/certificate.ts";
import { directAccept } from "../support/direct-accept.ts";
import { openTestInbound } from "../support/inbound-env.ts";
import { missing } from "../support/peer.ts";
import { openWebOrigin, type WebOrigin } from "../support/web-origin.ts";

const run = promisify(execFile);

const noCurl = missing("curl");
const noProxychains = missing("proxychains4");

const hello: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    response.setHeader("X-Seen", `${request.method} ${request.url} ${request.headers.host}`);
    response.setHeader("X-Raw", JSON.stringify(request.rawHeaders));
    response.end(`hello ${Buffer.concat(chunks).length}`);
  });
};

interface CurlResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function curl(...args: string[]): Promise<CurlResult> {
  try {
    const { stdout, stderr } = await run("curl", ["-sS", "-m", "20", "--noproxy", "", ...args], {
      maxBuffer: 1 << 26,
    });
    return { code: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, out: stdout, err: stderr };
  }
}

const USERS = [{ username: "alice", password: "s3cr:et" }];

test("curl through mixed: every scheme reaches the origin", { skip: noCurl }, async () => {
  await using origin = await openWebOrigin(hello);
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(mixed, {}, { accept });
  const url = `http://127.0.0.1:${origin.port}/x?y`;
  for (const [args, type] of [
    [["-x", `http://127.0.0.1:${proxy.port}`], "HTTP"],
    [["-p", "-x", `http://127.0.0.1:${proxy.port}`], "HTTPS"],
    [["-p", "--proxy1.0", `127.0.0.1:${proxy.port}`], "HTTPS"],
    [["-x", `socks4://127.0.0.1:${proxy.port}`], "Socks4"],
    [["-x", `socks4a://127.0.0.1:${proxy.port}`], "Socks4"],
    [["-x", `socks5://127.0.0.1:${proxy.port}`], "Socks5"],
    [["-x", `socks5h://127.0.0.1:${proxy.port}`], "Socks5"],
  ] as const) {
    const { code, out, err } = await curl(...args, url);
    assert.equal(code, 0, `${args.join(" ")}: ${err}`);
    assert.equal(out, "hello 0");
    assert.equal(sessions.at(-1)?.inbound.type, type);
    assert.equal(sessions.at(-1)?.destination.port, origin.port);
  }
});

test("curl: names go to the proxy with 4a, 5h and HTTP", { skip: noCurl }, async () => {
  await using origin = await openWebOrigin(hello);
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(mixed, {}, { accept });
  for (const scheme of ["http", "socks4a", "socks5h"]) {
    const { out } = await curl(
      "-x",
      `${scheme}://127.0.0.1:${proxy.port}`,
      `http://origin.test:${origin.port}/`,
    );
    assert.equal(out, "hello 0");
    assert.deepEqual(sessions.at(-1)?.destination, { host: "origin.test", ip: null, port: origin.port });
  }
});

test("curl: IPv6 destinations", { skip: noCurl }, async (t) => {
  let origin: WebOrigin;
  try {
    origin = await openWebOrigin(hello, { host: "::1" });
  } catch {
    return t.skip("SKIP IPv6: no ::1 here");
  }
  await using opened = origin;
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(mixed, {}, { accept });
  for (const args of [
    ["-x", `http://127.0.0.1:${proxy.port}`],
    ["-p", "-x", `http://127.0.0.1:${proxy.port}`],
    ["-x", `socks5://127.0.0.1:${proxy.port}`],
    ["-x", `socks5h://127.0.0.1:${proxy.port}`],
  ]) {
    const { out, err } = await curl(...args, `http://[::1]:${opened.port}/`);
    assert.equal(out, "hello 0", err);
    assert.equal(sessions.at(-1)?.destination.ip, "::1");
  }
});

test("curl: an IPv6 client", { skip: noCurl }, async (t) => {
  await using origin = await openWebOrigin(hello);
  const { accept, sessions } = directAccept();
  let opened;
  try {
    opened = await openTestInbound(mixed, {}, { accept, ip: "::1" as Ip });
  } catch {
    return t.skip("SKIP IPv6: no ::1 here");
  }
  await using proxy = opened;
  const { out } = await curl("-x", `socks5h://[::1]:${proxy.port}`, `http://127.0.0.1:${origin.port}/`);
  assert.equal(out, "hello 0");
  assert.equal(sessions.at(-1)?.source.ip, "::1");
});

test("curl: users of the listener", { skip: noCurl }, async () => {
  await using origin = await openWebOrigin(hello);
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(mixed, { users: USERS }, { accept });
  const url = `http://127.0.0.1:${origin.port}/`;
  const good = ["--proxy-user", "alice:s3cr:et"];
  const bad = ["--proxy-user", "alice:wrong"];
  const at = `127.0.0.1:${proxy.port}`;
  for (const args of [
    ["-x", `http://${at}`],
    ["-p", "-x", `http://${at}`],
    ["-x", `socks5h://${at}`],
  ]) {
    assert.equal((await curl(...args, ...good, url)).out, "hello 0", args.join(" "));
    assert.equal(sessions.at(-1)?.inbound.user, "alice");
    const count = sessions.length;
    for (const wrong of [bad, []]) {
      const { code, out } = await curl(...args, ...wrong, "-w", "%{http_code}%{http_connect}", url);
      if (args[0] === "-x" && args[1]?.startsWith("http")) assert.match(out, /407/);
      else assert.notEqual(code, 0);
    }
    assert.equal((await curl(...args, "--proxy-user", "unknown:", url)).out.includes("hello"), false);
    assert.equal(sessions.length, count, "a refused client opened a session");
  }
  assert.notEqual((await curl("-x", `socks4://${at}`, url)).code, 0);
});

test("curl --proxy-anyauth asks again on the same connection", { skip: noCurl }, async () => {
  await using origin = await openWebOrigin(hello);
  const { accept } = directAccept();
  await using proxy = await openTestInbound(http, { users: USERS }, { accept });
  for (const tunnel of [[], ["-p"]]) {
    const { out, err } = await curl(
      ...tunnel,
      "-v",
      "-x",
      `http://127.0.0.1:${proxy.port}`,
      "--proxy-anyauth",
      "--proxy-user",
      "alice:s3cr:et",
      `http://127.0.0.1:${origin.port}/`,
    );
    assert.equal(out.endsWith("hello 0"), true, err);
    assert.match(err, /Re-using existing connection|Connection #0 to host .* left intact/i);
  }
});

test("curl: an HTTPS proxy", { skip: noCurl }, async () => {
  await using origin = await openWebOrigin(hello);
  const { accept } = directAccept();
  const { cert, key } = makeCertificate();
  await using proxy = await openTestInbound(http, { certificate: cert, "private-key": key }, { accept });
  const args = ["-x", `https://127.0.0.1:${proxy.port}`, "--proxy-insecure"];
  assert.equal((await curl(...args, `http://127.0.0.1:${origin.port}/`)).out, "hello 0");
  assert.equal((await curl("-p", ...args, `http://127.0.0.1:${origin.port}/`)).out, "hello 0");
  const plain = await curl("-x", `http://127.0.0.1:${proxy.port}`, `http://127.0.0.1:${origin.port}/`);
  assert.notEqual(plain.code, 0);
});

test("curl: failures have their codes", { skip: noCurl }, async () => {
  let failure: Error = new DialError("rejected", "rule");
  const { accept } = directAccept(undefined, () => failure);
  const { cert, key } = makeCertificate();
  await using proxy = await openTestInbound(mixed, {}, { accept });
  await using secure = await openTestInbound(mixed, { certificate: cert, "private-key": key }, { accept });
  for (const [reason, status, socksCode] of [
    ["rejected", 403, 2],
    ["timeout", 504, 6],
    ["refused", 502, 5],
    ["unreachable", 502, 3],
    ["resolve", 502, 4],
    ["failed", 502, 1],
  ] as const) {
    failure = new DialError(reason, "secret inner text");
    const url = "http://origin.test:81/";
    for (const place of [`http://127.0.0.1:${proxy.port}`, `https://127.0.0.1:${secure.port}`]) {
      const args = ["-x", place, "--proxy-insecure"];
      const plain = await curl(...args, "-w", " %{http_code}", url);
      assert.match(plain.out, new RegExp(`^[^\\n]+\\n ${status}$`), reason);
      assert.equal(plain.out.includes("secret"), false);
      const tunnel = await curl(...args, "-p", "-o", "/dev/null", "-w", "%{http_connect}", url);
      assert.equal(tunnel.out, String(status), `${place} ${reason} ${tunnel.err}`);
    }
    const socks5 = await curl("-x", `socks5h://127.0.0.1:${proxy.port}`, url);
    assert.match(socks5.err, new RegExp(`\\(${socksCode}\\)`), reason);
  }
  failure = new DialError("dropped", "silence");
  const quiet = await curl("-x", `http://127.0.0.1:${proxy.port}`, "http://origin.test/");
  assert.equal(quiet.code, 52, quiet.err); // empty reply
  const quietSocks = await curl("-x", `socks5h://127.0.0.1:${proxy.port}`, "http://origin.test/");
  assert.notEqual(quietSocks.code, 0);
});

test("curl: uploads, chunked and with a length, both answers whole", { skip: noCurl }, async () => {
  await using origin = await openWebOrigin(hello);
  const { accept, sessions } = directAccept();
  await using proxy = await openTestInbound(http, {}, { accept });
  const folder = await mkdtemp(join(tmpdir(), "weir-plain-"));
  try {
    const file = join(folder, "body");
    await writeFile(file, randomBytes(3_000_000));
    const args = ["-x", `http://127.0.0.1:${proxy.port}`, `http://127.0.0.1:${origin.port}/up`];
    assert.equal((await curl("-T", file, ...args)).out, "hello 3000000");
    assert.equal((await curl("-H", "Transfer-Encoding: chunked", "-T", file, ...args)).out, "hello 3000000");
    assert.equal(
      (await curl("-H", "Expect: 100-continue", "--data-binary", `@${file}`, ...args)).out,
      "hello 3000000",
    );
    assert.equal((await curl("-X", "POST", ...args)).out, "hello 0");
    const before = sessions.length;
    const both = await curl(
      ...args,
      args[2] as string,
      "-o",
      "/dev/null",
      "-o",
      "/dev/null",
      "-w",
      "%{num_connects}",
    );
    assert.equal(both.out, "10", "the second request uses the first one's connection");
    assert.equal(sessions.length, before + 1, "and one session carried both");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("curl: HTTP/1.0, HEAD, 204, 304", { skip: noCurl }, async () => {
  await using origin = await openWebOrigin((request, response) => {
    const status = Number(request.url?.slice(1)) || 200;
    if (status === 200) response.write("part one, ");
    else response.statusCode = status;
    response.end(status === 200 ? "part two" : undefined);
  });
  const { accept } = directAccept();
  await using proxy = await openTestInbound(http, {}, { accept });
  const args = ["-x", `http://127.0.0.1:${proxy.port}`];
  const url = `http://127.0.0.1:${origin.port}/`;
  assert.equal((await curl("-0", ...args, url)).out, "part one, part two");
  assert.equal((await curl(...args, url)).out, "part one, part two");
  assert.match((await curl("-I", ...args, url)).out, /^HTTP\/1.1 200 OK\r\n/);
  assert.equal((await curl("-w", "%{http_code}", ...args, `${url}204`)).out, "204");
  assert.equal((await curl("-w", "%{http_code}", ...args, `${url}304`)).out, "304");
});

test("a big download arrives whole through every scheme", { skip: noCurl }, async () => {
  const bytes = randomBytes(8 * 1024 * 1024);
  await using origin = await openWebOrigin((_request, response) => response.end(bytes));
  const { accept } = directAccept();
  await using proxy = await openTestInbound(mixed, {}, { accept });
  for (const args of [
    ["-x", "http"],
    ["-p", "-x", "http"],
    ["-x", "socks5h"],
  ]) {
    const scheme = args.pop() as string;
    const { stdout } = await run(
      "curl",
      [
        "-sS",
        "-m",
        "20",
        "--noproxy",
        "",
        ...args,
        `${scheme}://127.0.0.1:${proxy.port}`,
        `http://127.0.0.1:${origin.port}/`,
      ],
      { encoding: "buffer", maxBuffer: 1 << 26 },
    );
    assert.equal(stdout.equals(bytes), true);
  }
});

test(
  "proxychains4: SOCKS4, SOCKS5 with and without users, HTTP",
  { skip: noCurl || noProxychains },
  async () => {
    await using origin = await openWebOrigin(hello);
    const { accept, sessions } = directAccept();
    await using proxy = await openTestInbound(mixed, {}, { accept });
    await using guarded = await openTestInbound(socks, { users: USERS }, { accept });
    const folder = await mkdtemp(join(tmpdir(), "weir-chains-"));
    try {
      for (const line of [
        `socks4 127.0.0.1 ${proxy.port}`,
        `socks5 127.0.0.1 ${proxy.port}`,
        `http 127.0.0.1 ${proxy.port}`,
        `socks5 127.0.0.1 ${guarded.port} alice s3cr:et`,
      ]) {
        const file = join(folder, "chains.conf");
        await writeFile(file, `strict_chain\nquiet_mode\nproxy_dns\n[ProxyList]\n${line}\n`);
        const before = sessions.length;
        const { stdout } = await run("proxychains4", [
          "-f",
          file,
          "curl",
          "-sS",
          "-m",
          "20",
          `http://127.0.0.1:${origin.port}/`,
        ]);
        assert.equal(stdout, "hello 0", line);
        assert.equal(sessions.length, before + 1, line);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);
