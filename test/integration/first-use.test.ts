/** What a new user tries first, with the programs that a new user has. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePorts } from "../support/free-ports.ts";
import { missing, startPeer } from "../support/peer.ts";
import { openNetns, skipNetns } from "../support/netns.ts";
import { startCore } from "../support/start-core.ts";
import { openWebOrigin } from "../support/web-origin.ts";

const exec = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const curl = (...args: string[]) =>
  exec("curl", ["-sS", "--max-time", "15", ...args]).then(({ stdout }) => stdout);

const openHello = (host = "127.0.0.1") =>
  openWebOrigin((request, response) => void response.end(`hello ${request.headers.host}`), { host });

test("curl through the mixed port, by HTTP and SOCKS, IPv4 and IPv6", { skip: missing("curl") }, async () => {
  const [mixed] = (await freePorts(1)) as [number];
  await using v4 = await openHello();
  await using v6 = await openHello("::1");
  await using _core = await startCore(`mixed-port: ${mixed}\nrules:\n  - MATCH,DIRECT\n`);
  const targets = [`127.0.0.1:${v4.port}`, `localhost:${v4.port}`, `[::1]:${v6.port}`];
  for (const target of targets)
    for (const way of [
      ["-x", `http://127.0.0.1:${mixed}`],
      ["-p", "-x", `http://127.0.0.1:${mixed}`],
      ["--socks5-hostname", `127.0.0.1:${mixed}`],
    ])
      assert.equal(await curl(...way, `http://${target}/`), `hello ${target}`, `${way.join(" ")} ${target}`);
});

test("rules decide: REJECT answers 403, the rest goes out", { skip: missing("curl") }, async () => {
  const [mixed] = (await freePorts(1)) as [number];
  await using origin = await openHello();
  await using _core = await startCore(
    `mixed-port: ${mixed}\nhosts: { "*.test": 127.0.0.1 }\nrules:\n  - DOMAIN-SUFFIX,bad.test,REJECT\n  - MATCH,DIRECT\n`,
  );
  const status = (host: string) =>
    curl(
      "-o",
      "/dev/null",
      "-w",
      "%{http_code}",
      "-x",
      `http://127.0.0.1:${mixed}`,
      `http://${host}:${origin.port}/`,
    );
  assert.equal(await status("good.test"), "200");
  assert.equal(await status("bad.test"), "403");
});

/** A DNS question for A of `name`, id 7 (RFC 1035 §4). */
function question(name: string): Buffer {
  const labels = name
    .split(".")
    .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([
    Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
    ...labels,
    Buffer.from([0, 0, 1, 0, 1]),
  ]);
}

test("UDP over SOCKS5: a DNS query that dnsmasq answers", { skip: missing("dnsmasq") }, async () => {
  const [mixed, dns] = (await freePorts(2)) as [number, number];
  await using _peer = await startPeer(
    [
      "dnsmasq",
      "--no-daemon",
      "--no-resolv",
      "--no-hosts",
      "--listen-address=127.0.0.1",
      "--bind-interfaces",
      `--port=${dns}`,
      "--address=/weir.test/203.0.113.7",
    ],
    dns,
  );
  await using _core = await startCore(`mixed-port: ${mixed}\nrules:\n  - MATCH,DIRECT\n`);
  const control = connect(mixed, "127.0.0.1");
  control.write(Buffer.from([5, 1, 0]));
  assert.deepEqual([...((await once(control, "data")) as [Buffer])[0]], [5, 0]);
  control.write(Buffer.from([5, 3, 0, 1, 0, 0, 0, 0, 0, 0]));
  const [reply] = (await once(control, "data")) as [Buffer];
  assert.deepEqual([...reply.subarray(0, 4)], [5, 0, 0, 1]);
  const udp = createSocket("udp4");
  const header = Buffer.from([0, 0, 0, 1, 127, 0, 0, 1, dns >> 8, dns & 0xff]);
  udp.send(Buffer.concat([header, question("www.weir.test")]), reply.readUInt16BE(8), "127.0.0.1");
  const [answer] = (await once(udp, "message")) as [Buffer];
  udp.close();
  control.destroy();
  assert.deepEqual([...answer.subarray(0, 12)], [0, 0, 0, 1, 127, 0, 0, 1, dns >> 8, dns & 0xff, 0, 7]);
  assert.deepEqual([...answer.subarray(-4)], [203, 0, 113, 7]);
});

test("the log has each address where clients are served once, that of DNS too", async () => {
  const [dns, tunnel] = (await freePorts(2)) as [number, number];
  await using core = await startCore(`
mixed-port: 0
dns: {enable: true, listen: "127.0.0.1:${dns}", nameserver: [127.0.0.1]}
listeners:
  - {name: both, type: tunnel, listen: 127.0.0.1, port: ${tunnel}, network: [tcp, udp], target: 127.0.0.1:1}
`);
  const lines = [...core.output().matchAll(/msg="(.* listening at .*)"/g)].map(([, text]) => text);
  assert.deepEqual(lines, [
    `both listening at 127.0.0.1:${tunnel} (tunnel)`,
    `dns.listen listening at 127.0.0.1:${dns}`,
  ]);
});

const examples = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".yaml"));
/** A TUN would take the traffic of the machine that runs the tests. */
const hasTun = (file: string) => /^tun:/m.test(readFileSync(join(root, "examples", file), "utf8"));

test("every example starts, listens, and ends", async () => {
  for (const file of examples.filter((name) => !hasTun(name))) {
    await using core = await startCore("mixed-port: 0\n", { args: ["-f", join(root, "examples", file)] });
    assert.equal(await core.stop(), 0);
    assert.match(core.output(), /listening at/, file);
    assert.doesNotMatch(core.output(), /level=(warning|error|fatal)/, file);
  }
});

const skip = skipNetns("examples with a TUN", "nft");

test("every example with a TUN starts and ends in a namespace", { skip }, async () => {
  for (const file of examples.filter(hasTun)) {
    await using netns = await openNetns("example");
    const args = ["-f", join(root, "examples", file)];
    await using core = await startCore("mixed-port: 0\n", { args, prefix: netns.prefix });
    assert.equal(await core.stop(), 0);
    assert.match(core.output(), /TUN\] \S+ listening on/, file);
    assert.doesNotMatch(core.output(), /level=(warning|error|fatal)/, file);
  }
});

test("-t names every mistake with its place and ends with exit code 1", async () => {
  await using core = await startCore("mixed-port: 0\n");
  core.write(
    'mixed-port: 70000\nmode: rul\nproxies:\n  - { name: a, type: sock5, server: x, port: 1 }\nrules: ["MATCH,absent"]\n',
  );
  const failed = (await exec(join(root, "bin", "weir"), ["-d", core.home, "-t"]).catch(
    (error: unknown) => error,
  )) as {
    code: number;
    stdout: string;
  };
  assert.equal(failed.code, 1);
  for (const place of [
    /config\.yaml:1:\d+ mixed-port: /,
    /config\.yaml:2:\d+ mode: /,
    /config\.yaml:4:\d+ proxies\[0\]/,
    /config\.yaml:5:\d+ rules\[0\]/,
  ])
    assert.match(failed.stdout, place);
  assert.match(failed.stdout, /rule/);
  assert.match(failed.stdout, /\nconfiguration file .*config\.yaml test failed\n$/);
});
