/** What a profile gets that says nothing, and which keys each kind of reload takes over. The real program. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { freePorts } from "../support/free-ports.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

interface Settings {
  readonly [key: string]: unknown;
  readonly tun: Readonly<Record<string, unknown>>;
  readonly "geox-url": Readonly<Record<string, string>>;
}

const api = (port: number, path: string, init?: RequestInit) =>
  fetch(`http://127.0.0.1:${port}${path}`, init);

async function settingsOf(controller: number): Promise<Settings> {
  return (await (await api(controller, "/configs")).json()) as Settings;
}

/** Every key of GET /configs (controller-api.md §5.1) with the default of the configuration.md §2 and §8. */
const DEFAULTS = {
  port: 0,
  "socks-port": 0,
  "redir-port": 0,
  "tproxy-port": 0,
  "tuic-server": { enable: false, listen: "", certificate: "", "private-key": "", "ech-key": "" },
  "ss-config": "",
  "vmess-config": "",
  authentication: null,
  "skip-auth-prefixes": null,
  "lan-allowed-ips": ["0.0.0.0/0", "::/0"],
  "lan-disallowed-ips": null,
  "allow-lan": false,
  "bind-address": "*",
  "inbound-tfo": false,
  "inbound-mptcp": false,
  mode: "rule",
  "unified-delay": false,
  "log-level": "info",
  ipv6: true,
  "interface-name": "",
  "routing-mark": 0,
  "geo-auto-update": false,
  "geo-update-interval": 24,
  "geodata-mode": false,
  "geodata-loader": "memconservative",
  "geosite-matcher": "succinct",
  "tcp-concurrent": false,
  "find-process-mode": "strict",
  sniffing: false,
  "etag-support": true,
  "keep-alive-idle": 0,
  "keep-alive-interval": 0,
  "disable-keep-alive": false,
};

const TUN_DEFAULTS = {
  "on-exit": "open",
  enable: false,
  device: "",
  stack: "gVisor",
  "dns-hijack": ["0.0.0.0:53"],
  "auto-route": true,
  "auto-detect-interface": true,
  "file-descriptor": 0,
  "inet4-address": ["198.18.0.1/30"],
  "inet6-address": ["fdfe:dcba:9876::1/126"],
  mtu: 9000,
  "gso-max-size": 65_536,
  "udp-timeout": 300,
  "icmp-timeout": 10,
  "iproute2-table-index": 2022,
  "iproute2-rule-index": 9000,
  "auto-redirect-input-mark": 0x2023,
  "auto-redirect-output-mark": 0x2024,
  "auto-redirect-iproute2-fallback-rule-index": 32_768,
  recvmsgx: true,
  "kernel-direct-max-entries": 4096,
  "kernel-direct-ebpf-mark": 0x4000_0000,
  "kernel-direct-ebpf-max-entries": 65_536,
  "kernel-direct-ebpf-proxy-mark": 0x2000_0000,
  "kernel-direct-ebpf-flow-entries": 65_536,
};

test("configuration.md §17.1: a profile of only `mixed-port` starts, and GET /configs shows every default", async () => {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const args = ["-ext-ctl", `127.0.0.1:${controller}`];
  await using core = await startCore(`mixed-port: ${mixed}\n`, { args });
  const { tun, "geox-url": geo, "global-ua": agent, ...rest } = await settingsOf(controller);
  assert.deepEqual(rest, { ...DEFAULTS, "mixed-port": mixed });
  assert.deepEqual(tun, TUN_DEFAULTS);
  const files = Object.entries(geo).map(([key, url]) => [key, new URL(url).pathname.split("/").at(-1)]);
  assert.deepEqual(Object.fromEntries(files), {
    "geo-ip": "geoip.dat",
    mmdb: "geoip.metadb",
    asn: "GeoLite2-ASN.mmdb",
    "geo-site": "geosite.dat",
  });
  assert.match(String(agent), /clash.*(meta|mihomo)/);
  assert.equal(await isOpen(mixed), true);
  assert.equal(await core.stop(), 0);
});

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const opened = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return opened;
}

test("configuration.md §17.4: a reload without force leaves the ports and replaces the rules; with force the ports move", async () => {
  const [controller, ...ports] = (await freePorts(5)) as [number, number, number, number, number];
  const [mixed, socks, nextMixed, nextSocks] = ports;
  const profile = (mixedPort: number, socksPort: number, more: string) => `
mixed-port: ${mixedPort}
socks-port: ${socksPort}
external-controller: 127.0.0.1:${controller}
${more}
`;
  await using core = await startCore(
    profile(mixed, socks, "rules: ['DOMAIN,first.example,DIRECT', 'MATCH,DIRECT']"),
  );
  const observe = async () => {
    const settings = await settingsOf(controller);
    const { rules } = (await (await api(controller, "/rules")).json()) as { rules: { payload: string }[] };
    return {
      shown: [
        settings["mixed-port"],
        settings["socks-port"],
        settings["allow-lan"],
        settings["bind-address"],
      ],
      lan: settings["lan-allowed-ips"],
      mode: settings["mode"],
      open: await Promise.all(ports.map(isOpen)),
      firstRule: rules[0]?.payload,
    };
  };
  const put = async (query: string) =>
    (await api(controller, `/configs${query}`, { method: "PUT", body: "{}" })).status;
  const before = await observe();
  const everywhere = ["0.0.0.0/0", "::/0"];
  assert.deepEqual(before, {
    shown: [mixed, socks, false, "*"],
    lan: everywhere,
    mode: "rule",
    open: [true, true, false, false],
    firstRule: "first.example",
  });

  const more =
    "allow-lan: true\nbind-address: 127.0.0.1\nlan-allowed-ips: [127.0.0.0/8]\nmode: global\nrules: ['DOMAIN,second.example,DIRECT', 'MATCH,DIRECT']";
  core.write(profile(nextMixed, nextSocks, more));
  assert.equal(await put(""), 204);
  assert.deepEqual(await observe(), { ...before, mode: "global", firstRule: "second.example" });
  assert.equal(await put("?force=false&reload=true"), 204);
  assert.deepEqual((await observe()).open, [true, true, false, false]);

  assert.equal(await put("?force=true"), 204);
  // Clients that wait at the old listeners are accepted before those close.
  await until("the end of the ports of before", async () => !(await isOpen(mixed)) && !(await isOpen(socks)));
  assert.deepEqual(await observe(), {
    shown: [nextMixed, nextSocks, true, "127.0.0.1"],
    lan: ["127.0.0.0/8"],
    mode: "global",
    open: [false, false, true, true],
    firstRule: "second.example",
  });
});
