/** `weir doctor` in namespaces that break one thing each: it names that, and nothing else. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeCertificate } from "../support/certificate.ts";
import { link, openNetns, skipNetns, type Netns } from "../support/netns.ts";
import { until } from "../support/until.ts";

const WEIR = join(import.meta.dirname, "../../bin/weir");
const skip = skipNetns("doctor", "setpriv", "ss", "prlimit", "unshare", "mount");
const SERVER = "192.0.2.1";
const DNS = `
const socket = require("node:dgram").createSocket("udp4");
socket.on("message", (query, { port, address }) => {
  const answer = Buffer.from(query);
  answer[2] = 0x81;
  answer[3] = 0x83;
  socket.send(answer, port, address);
});
socket.bind(53, "${SERVER}");
`;
/** The type of a question without EDNS stands 4 bytes before its end; 65 is HTTPS (RFC 9460 §14.1). */
const isHttps = "query.readUInt16BE(query.length - 4) === 65";
const DNS_WITHOUT_HTTPS = DNS.replace("const answer", `if (${isHttps}) return;\n  const answer`);
const DNS_REFUSING_HTTPS = DNS.replace("0x83;", `${isHttps} ? 0x85 : 0x83;`);

/** RFC 5905 §7.3: an answer of a server whose clock is a day ahead. */
const NTP_AHEAD = `
const socket = require("node:dgram").createSocket("udp4");
socket.on("message", (question, { port, address }) => {
  const answer = Buffer.alloc(48);
  answer.set([0x24, 1]);
  question.copy(answer, 24, 40, 48);
  const seconds = Math.floor(Date.now() / 1000) + 86_400 + 2_208_988_800;
  for (const at of [16, 32, 40]) answer.writeUInt32BE(seconds, at);
  socket.send(answer, port, address);
});
socket.bind(123, "${SERVER}");
`;

interface Finding {
  readonly what: string;
  readonly level: string;
  readonly found: string;
  readonly meaning?: string;
  readonly advice?: string;
}

interface World extends AsyncDisposable {
  readonly near: Netns;
  readonly far: Netns;
  /** What is wrong, and the exit code. */
  doctor(config: string, prefix?: readonly string[]): Promise<{ wrong: readonly Finding[]; code: number }>;
  readonly home: string;
}

/** A namespace with routes of both families and a nameserver that answers: nothing is wrong in it. */
async function openWorld(resolvConf = `nameserver ${SERVER}\n`, dns = DNS): Promise<World> {
  await using undo = new AsyncDisposableStack();
  const near = undo.use(await openNetns("near", resolvConf));
  const far = undo.use(await openNetns("far"));
  await link(
    { netns: near, device: "out", addresses: ["192.0.2.2/24", "2001:db8::2/64"] },
    { netns: far, device: "in", addresses: [`${SERVER}/24`, "2001:db8::1/64"] },
  );
  await near.ip(`route add default via ${SERVER}`, "-6 route add default via 2001:db8::1");
  far.start(process.execPath, "-e", dns);
  const home = mkdtempSync(join(tmpdir(), "weir-doctor-"));
  undo.defer(() => rmSync(home, { recursive: true, force: true }));
  const owned = undo.move();
  return {
    near,
    far,
    home,
    async doctor(config, prefix = []) {
      writeFileSync(join(home, "config.yaml"), config);
      const [program, ...words] = [...near.prefix, ...prefix, WEIR, "doctor", "-d", home, "-json"];
      const child = spawn(program, words, {
        stdio: ["ignore", "pipe", "inherit"],
        env: { ...process.env, WEIR_HOME: home },
      });
      const [chunks, [code]] = await Promise.all([
        child.stdout.setEncoding("utf8").toArray(),
        once(child, "exit"),
      ]);
      const lines = chunks.join("").trim().split("\n");
      const all = lines.map((line) => JSON.parse(line) as Finding);
      for (const { level, meaning, advice } of all) assert.equal(level !== "ok", Boolean(meaning && advice));
      return { wrong: all.filter(({ level }) => level !== "ok"), code: Number(code) };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const PLAIN = "mixed-port: 17890\nipv6: true\n";
const indented = (pem: string) => pem.trim().replaceAll("\n", "\n      ");

function withCertificate(options: Parameters<typeof makeCertificate>[0]): string {
  const { cert, key } = makeCertificate(options);
  return `svc:
  secret: more than thirty-two bytes of secret
  public-base-url: https://proxy.example.com
  managed-listeners: [edge]
listeners:
  - name: edge
    type: anytls
    listen: 127.0.0.1
    port: 17891
    users: {}
    certificate: |
      ${indented(cert)}
    private-key: |
      ${indented(key)}
`;
}

const LISTENER = `
require("node:net").createServer().listen(17890, "127.0.0.1", () => console.log("listening"));
setInterval(() => {}, 1000);
`;

interface Case {
  readonly name: string;
  readonly config?: string;
  readonly prefix?: readonly string[];
  readonly resolvConf?: string;
  /** The nameserver's program. */
  readonly dns?: string;
  spoil?(world: World): Promise<void> | void;
  readonly what: string;
  readonly level: "warning" | "error";
  readonly found: RegExp;
}

const DAY_MS = 86_400_000;
/** Runs what follows where a mount of its own hides something. */
const hiding = (mount: string) => ["unshare", "-m", "sh", "-c", `${mount} && exec "$@"`, "sh"];
const UNPRIVILEGED = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];

const CASES: readonly Case[] = [
  {
    name: "no route",
    spoil: ({ near }) => near.ip("route del default", "-6 route del default"),
    config: "mixed-port: 17890\nipv6: false\n",
    what: "route",
    level: "error",
    found: /IPv4 by nothing, IPv6 by nothing/,
  },
  {
    name: "no IPv6",
    spoil: ({ near }) => near.ip("-6 route del default"),
    what: "IPv6",
    level: "warning",
    found: /no default route, while ipv6 is true/,
  },
  {
    name: "DNS is dead",
    spoil: ({ near }) => near.ip(`route add blackhole ${SERVER}`),
    what: "DNS",
    level: "error",
    found: /192\.0\.2\.1/,
  },
  {
    name: "a small MTU",
    spoil: ({ near }) => near.ip("link set out mtu 1000"),
    config: "mixed-port: 17890\nipv6: false\n",
    what: "MTU",
    level: "error",
    found: /out has 1000/,
  },
  {
    name: "a port is taken",
    async spoil({ near }) {
      near.start(process.execPath, "-e", LISTENER);
      const taken = async () => (await near.run("ss", "-Hltn")).includes("17890");
      await until("the port is taken", taken);
    },
    what: "ports",
    level: "error",
    found: /port 17890: EADDRINUSE/,
  },
  {
    name: "an address that the machine does not have",
    config: "mixed-port: 17890\nipv6: true\nallow-lan: true\nbind-address: 198.51.100.7\n",
    what: "ports",
    level: "error",
    found: /198\.51\.100\.7 port 17890: EADDRNOTAVAIL/,
  },
  {
    name: "a certificate has expired",
    config: withCertificate({ names: ["proxy.example.com"], validForMs: -DAY_MS }),
    what: "certificate of listener edge",
    level: "error",
    found: /^expired/,
  },
  {
    name: "a certificate ends soon",
    config: withCertificate({ names: ["proxy.example.com"], validForMs: 3 * DAY_MS }),
    what: "certificate of listener edge",
    level: "warning",
    found: /^valid until/,
  },
  {
    name: "a certificate for another name",
    config: withCertificate({ names: ["other.example.com"], validForMs: 90 * DAY_MS }),
    what: "certificate of listener edge",
    level: "warning",
    found: /not for proxy\.example\.com/,
  },
  {
    name: "a store that others can write",
    config: withCertificate({ names: ["proxy.example.com"], validForMs: 90 * DAY_MS }),
    spoil: ({ home }) => chmodSync(home, 0o777),
    what: "store",
    level: "error",
    found: /others can write to it/,
  },
  {
    name: "few open files",
    prefix: ["prlimit", "--nofile=512:512"],
    what: "limits",
    level: "warning",
    found: /^512 open files/,
  },
  {
    name: "the clock is off by a day",
    config: `${PLAIN}ntp: { enable: true, server: ${SERVER} }\n`,
    async spoil({ near, far }) {
      far.start(process.execPath, "-e", NTP_AHEAD);
      const listens = async () => (await far.run("ss", "-Hlun")).includes(":123 ");
      await until("the time server listens", listens);
      assert.match(await near.run("ip", "route", "get", SERVER), /dev out/);
    },
    what: "clock",
    level: "error",
    found: /86[34]\d\d\.\d s behind 192\.0\.2\.1$/,
  },
  {
    name: "the time server is silent",
    config: `${PLAIN}ntp: { enable: true, server: 192.0.2.77 }\n`,
    what: "clock",
    level: "warning",
    found: /192\.0\.2\.77 port 123/,
  },
  {
    name: "IPv6 passes the TUN by",
    config: "mixed-port: 17890\nipv6: false\ntun: { enable: true }\n",
    what: "IPv6",
    level: "error",
    found: /by out, and a TUN that takes no IPv6/,
  },
  {
    name: "no /dev/net/tun",
    prefix: hiding("mount -t tmpfs none /dev/net"),
    config: `${PLAIN}tun: { enable: true }\n`,
    what: "TUN",
    level: "error",
    found: /\/dev\/net\/tun/,
  },
  {
    name: "a kernel without bpf",
    prefix: hiding("mount -t tmpfs none /proc/sys/kernel"),
    what: "bpf",
    level: "warning",
    found: /does not have bpf/,
  },
  {
    name: "no library of nftables",
    prefix: hiding(
      'for at in $(find /usr/lib /lib -name "libnftables.so.1*" -type f); do mount --bind /dev/null "$at"; done',
    ),
    what: "nftables",
    level: "warning",
    found: /nftables/,
  },
  {
    name: "a full disk",
    prefix: hiding(
      'home=$(ls -d "$WEIR_HOME"); text=$(cat "$home/config.yaml"); mount -t tmpfs -o size=1m none "$home"; echo "$text" >"$home/config.yaml"',
    ),
    what: "disk",
    level: "error",
    found: /^[01] MiB free/,
  },
  {
    name: "no nameserver",
    resolvConf: "",
    what: "DNS",
    level: "error",
    found: /127\.0\.0\.1 fails with ECONNREFUSED/,
  },
  {
    name: "one nameserver of two is dead",
    resolvConf: `nameserver ${SERVER}\nnameserver 192.0.2.77\n`,
    what: "DNS",
    level: "warning",
    found: /192\.0\.2\.1 answers, 192\.0\.2\.77 does not answer/,
  },
  {
    name: "questions for HTTPS records are swallowed",
    dns: DNS_WITHOUT_HTTPS,
    what: "HTTPS records",
    level: "warning",
    found: /192\.0\.2\.1 does not answer this question/,
  },
  {
    name: "questions for HTTPS records are refused",
    dns: DNS_REFUSING_HTTPS,
    what: "HTTPS records",
    level: "warning",
    found: /192\.0\.2\.1 answers it with error 5/,
  },
  {
    name: "a certificate that is none",
    config: withCertificate({ names: ["proxy.example.com"] }).replaceAll(/MII[^\n]+/g, "MIIB"),
    what: "certificate of listener edge",
    level: "error",
    found: /./,
  },
  {
    name: "a configuration with an error",
    config: "mixed-port: many\n",
    what: "configuration",
    level: "error",
    found: /config\.yaml:1:13/,
  },
];

test("nothing is wrong where nothing was broken", { skip }, async () => {
  await using world = await openWorld();
  assert.deepEqual(await world.doctor(PLAIN), { wrong: [], code: 0 });
});

for (const { name, config = PLAIN, prefix, resolvConf, dns, spoil, what, level, found } of CASES)
  test(`${name}: it says so, and nothing else`, { skip }, async () => {
    await using world = await openWorld(resolvConf, dns);
    await spoil?.(world);
    const { wrong, code } = await world.doctor(config, prefix);
    assert.deepEqual(
      wrong.map((finding) => [finding.what, finding.level]),
      [[what, level]],
      JSON.stringify(wrong),
    );
    assert.match(wrong[0]?.found ?? "", found);
    assert.equal(code, level === "error" ? 1 : 0);
  });

test("no rights: the TUN of the configuration is named", { skip }, async () => {
  await using world = await openWorld();
  const { wrong, code } = await world.doctor(`${PLAIN}tun: { enable: true }\n`, UNPRIVILEGED);
  const rights = wrong.find(({ what }) => what === "rights");
  assert.match(rights?.meaning ?? "", /cannot be opened without CAP_NET_ADMIN/);
  assert.match(wrong.find(({ what }) => what === "nftables")?.meaning ?? "", /cannot be used/);
  assert.equal(code, 1);
});

test("no rights: a node with a network of its own is named", { skip }, async () => {
  await using world = await openWorld();
  const key = Buffer.alloc(32, 7).toString("base64");
  const node = `{name: far, type: wireguard, server: 192.0.2.1, port: 1, ip: 10.0.0.2, private-key: ${key}, public-key: ${key}}`;
  const { wrong } = await world.doctor(`${PLAIN}proxies: [${node}]\n`, UNPRIVILEGED);
  const rights = wrong.find(({ what }) => what === "rights");
  assert.match(rights?.meaning ?? "", /proxy far has a network of its own, which takes CAP_SYS_ADMIN/);
});
