/** The program with nodes over TLS: who shakes hands with them, a worker or the main thread, shows in nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../proofs/changes-hold.ts";
import { makeCertificate } from "../support/certificate.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { socksConnect } from "../support/socks-client.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP nodes by workers: needs Linux";
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const certificate = makeCertificate({ names: ["server.test"] });
const tls = `certificate: ${JSON.stringify(certificate.cert)}, private-key: ${JSON.stringify(certificate.key)}`;

const SERVER = `
listeners:
  - { name: trojan, type: trojan, listen: 127.0.0.1, port: 0, users: [{ username: ann, password: letmein }], ${tls} }
  - { name: wss, type: vless, listen: 127.0.0.1, port: 0, ws-path: /ws, users: [{ username: ann, uuid: ${uuid} }], ${tls} }
  - { name: vless, type: vless, listen: 127.0.0.1, port: 0, users: [{ username: ann, uuid: ${uuid} }], ${tls} }
  - { name: vmess, type: vmess, listen: 127.0.0.1, port: 0, users: [{ username: ann, uuid: ${uuid}, alterId: 0 }], ${tls} }
mode: direct
`;

interface Ports {
  readonly trojan: number;
  readonly vless: number;
  readonly vmess: number;
  readonly wss: number;
}

/** But for the last three they are of use. */
const NODES = [
  "trojan",
  "vless",
  "vmess",
  "browser",
  "drawn",
  "wss",
  "upgraded",
  "unpinned",
  "misnamed",
  "mistaken",
];

const clientOf = ({ trojan, vless, vmess, wss }: Ports, processes: string): string => `
external-controller: 127.0.0.1:0
workers: 2
log-level: info
find-process-mode: ${processes}
tls: { custom-certifactes: [${JSON.stringify(certificate.cert)}] }
listeners:
  - { name: in, type: mixed, listen: 127.0.0.1, port: 0 }
proxies:
  - { name: trojan, type: trojan, server: 127.0.0.1, port: ${trojan}, password: letmein, sni: server.test }
  - { name: vless, type: vless, server: 127.0.0.1, port: ${vless}, uuid: ${uuid}, tls: true, servername: server.test }
  - { name: vmess, type: vmess, server: 127.0.0.1, port: ${vmess}, uuid: ${uuid}, cipher: auto, tls: true, servername: server.test }
  - { name: wss, type: vless, server: 127.0.0.1, port: ${wss}, uuid: ${uuid}, tls: true, servername: server.test, network: ws, ws-opts: { path: /ws } }
  - { name: upgraded, type: vless, server: 127.0.0.1, port: ${wss}, uuid: ${uuid}, tls: true, servername: server.test, network: ws, ws-opts: { path: /ws, v2ray-http-upgrade: true } }
  - { name: browser, type: trojan, server: 127.0.0.1, port: ${trojan}, password: letmein, sni: server.test, client-fingerprint: chrome }
  - { name: drawn, type: trojan, server: 127.0.0.1, port: ${trojan}, password: letmein, sni: server.test, client-fingerprint: randomized }
  - { name: unpinned, type: trojan, server: 127.0.0.1, port: ${trojan}, password: letmein, sni: server.test, fingerprint: ${"ab".repeat(32)} }
  - { name: misnamed, type: trojan, server: 127.0.0.1, port: ${trojan}, password: letmein, sni: elsewhere.test }
  - { name: mistaken, type: vmess, server: 127.0.0.1, port: ${vmess}, uuid: ${uuid}, cipher: auto, tls: true, servername: elsewhere.test, client-fingerprint: chrome }
proxy-groups:
  - { name: choice, type: select, proxies: [${NODES.join(", ")}] }
rules:
  - MATCH,choice
`;

interface Row {
  readonly upload: number;
  readonly download: number;
}

for (const processes of ["off", "always"])
  test(`nodes over TLS, with find-process-mode ${processes}`, { skip }, async () => {
    await using server = await startCore(SERVER);
    await using origin = await openTcpOrigin(echo);
    const [trojan, vless, vmess] = [
      await server.port("trojan"),
      await server.port("vless"),
      await server.port("vmess"),
    ];
    const wss = await server.port("wss");
    await using core = await startCore(clientOf({ trojan, vless, vmess, wss }, processes));
    const port = await core.port("in");
    const rows = async (): Promise<readonly Row[]> =>
      (await call<{ connections: readonly Row[] | null }>(core, "GET", "/connections"))?.connections ?? [];
    for (const name of NODES.slice(0, -3)) {
      await call(core, "PUT", "/proxies/choice", { name });
      for (let count = 0; count < 8; count++) {
        const { client, status } = await socksConnect(port, "127.0.0.1", origin.port);
        using _client = client;
        assert.equal(status, 0);
        client.send("ping");
        assert.equal(String(await client.read(4)), "ping", name);
        if (count === 7)
          await until("both counts", async () => {
            const open = await rows();
            return open.some(({ upload, download }) => upload === 4 && download === 4);
          });
      }
      await until("they are gone", async () => (await rows()).length === 0);
    }
    for (const [name, why] of [
      ["unpinned", /TLS to server\.test: no certificate of the server has the fingerprint abab/],
      ["mistaken", /TLS to elsewhere\.test: Hostname\/IP does not match certificate's altnames/],
      ["misnamed", /TLS to elsewhere\.test: Hostname\/IP does not match certificate's altnames/],
    ] as const) {
      await call(core, "PUT", "/proxies/choice", { name });
      const { length: from } = core.output();
      const { client, status } = await socksConnect(port, "127.0.0.1", origin.port);
      using _client = client;
      assert.notEqual(status, 0);
      await core.shows(why, from);
    }
  });
