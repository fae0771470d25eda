/** Against servers and clients that others wrote: dnsmasq, unbound, dig, kdig. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { makeCertificate } from "../support/certificate.ts";
import {
  dig,
  freePort,
  HOST,
  listen,
  missing,
  openTestDns,
  server,
  startDnsmasq,
  startPeer,
} from "./dns-kit.ts";

const signal = () => AbortSignal.timeout(6000);
const ZONE = [
  "address=/a.example.org/192.0.2.1",
  "address=/a.example.org/2001:db8::1",
  "cname=www.example.org,a.example.org",
  "host-record=a.example.org,192.0.2.1,2001:db8::1,300",
  "mx-host=example.org,mail.example.org,10",
  'txt-record=example.org,"v=spf1 -all","second text"',
  "srv-host=_sip._udp.example.org,sip.example.org,5060,1,2",
  "naptr-record=example.org,10,20,U,SIP+D2U,!x!sip:y!,example.org",
  "dns-rr=example.org,65,00010000010003026832",
  "local-ttl=300",
];

test("dnsmasq as upstream, dig as client", { skip: missing("dnsmasq", "dig") }, async () => {
  const port = await freePort();
  await using _ = await startDnsmasq(port, ZONE);
  const questions = [
    ["a.example.org"],
    ["a.example.org", "AAAA"],
    ["www.example.org"],
    ["example.org", "MX"],
    ["example.org", "TXT"],
    ["_sip._udp.example.org", "SRV"],
    ["example.org", "NAPTR"],
    ["example.org", "TYPE65"],
    ["a.example.org", "+tcp"],
  ];
  // Asked before the engine keeps a TCP connection: dnsmasq started like this serves one of them at a time.
  const answersOf = async (at: number) => {
    const all = [];
    for (const words of questions) all.push((await dig(at, "+short", ...words)).sort());
    return all;
  };
  const wanted = await answersOf(port);
  assert.ok(wanted.every((lines) => lines.length > 0));
  for (const scheme of ["udp", "tcp"]) {
    await using dns = await openTestDns({ nameserver: [server(`${scheme}://${HOST}:${port}`)] });
    await using front = await listen(dns.handle);
    assert.deepEqual(await answersOf(front.port), wanted);
    const missingName = (await dig(front.port, "nowhere.example.org")).join("\n");
    assert.match(missingName, /status: (REFUSED|NXDOMAIN|SERVFAIL)/);
    const mx = await dns.query("example.org.", 15, signal());
    assert.equal(mx.answers[0]?.data, "10 mail.example.org.");
    const txt = await dns.query("example.org.", 16, signal());
    assert.equal(txt.answers[0]?.data, '"v=spf1 -all" "second text"');
  }
});

const LOCAL_DATA = [
  `local-zone: "example.net." static`,
  `local-data: "example.net. 300 IN SOA ns.example.net. root.example.net. 1 2 3 4 60"`,
  `local-data: "a.example.net. 300 IN A 192.0.2.7"`,
  `local-data: "a.example.net. 300 IN AAAA 2001:db8::7"`,
  `local-data: "big.example.net. 300 IN TXT ${"x".repeat(240)}"`,
];

test(
  "unbound over UDP, TCP, TLS and HTTPS with a certificate that is checked",
  { skip: missing("unbound", "dig") },
  async () => {
    const [plain, dot, doh] = [await freePort(), await freePort(), await freePort()];
    const { cert, key } = makeCertificate({ names: ["dns.example.net", HOST] });
    setDefaultCACertificates([...getCACertificates("default"), cert]);
    const configure = async (folder: string) => {
      await writeFile(join(folder, "cert.pem"), cert);
      await writeFile(join(folder, "key.pem"), key);
      const lines = [
        "server:",
        'username: ""\nchroot: ""\nuse-syslog: no\nlogfile: ""\ndo-daemonize: no',
        `directory: "${folder}"\npidfile: "${folder}/pid"`,
        ...[plain, dot, doh].map((port) => `interface: ${HOST}@${port}`),
        `tls-port: ${dot}\nhttps-port: ${doh}`,
        `tls-service-key: "${folder}/key.pem"\ntls-service-pem: "${folder}/cert.pem"`,
        ...LOCAL_DATA,
        "remote-control:\n  control-enable: no",
      ];
      await writeFile(join(folder, "unbound.conf"), lines.join("\n"));
      return ["-d", "-c", join(folder, "unbound.conf")];
    };
    const isReady = async () => (await dig(plain, "+short", "a.example.net")).length > 0;
    await using _ = await startPeer("/usr/sbin/unbound", configure, isReady);
    for (const text of [
      `udp://${HOST}:${plain}`,
      `tcp://${HOST}:${plain}`,
      `tls://${HOST}:${dot}`,
      `https://${HOST}:${doh}/dns-query`,
      `tls://${HOST}:${dot}#name-cert-verify=dns.example.net`,
    ]) {
      await using dns = await openTestDns({ nameserver: [server(text)] });
      const found = await dns.resolver.lookup("a.example.net", { signal: signal() });
      assert.deepEqual(
        found.map(({ ip }) => ip),
        ["192.0.2.7", "2001:db8::7"],
        text,
      );
      const none = await dns.query("none.example.net.", 1, signal());
      assert.deepEqual([none.status, none.authority[0]?.type], [3, 6]);
      assert.equal(dns.explain("none.example.net").cached, true);
      await using front = await listen(dns.handle);
      assert.equal((await dig(front.port, "+short", "big.example.net", "TXT"))[0]?.length, 242);
    }
    await using dns = await openTestDns({
      nameserver: [server(`tls://${HOST}:${dot}#name-cert-verify=other.net`)],
    });
    await assert.rejects(dns.resolver.lookup("a.example.net", { signal: signal() }), /other\.net|altnames/i);
  },
);
