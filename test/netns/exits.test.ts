/** Two uplinks to one address: `interface-name` and `routing-mark` decide which of them a connection takes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { link, openNetns, skipNetns, type Netns } from "../support/netns.ts";
import { startCore } from "../support/start-core.ts";

const skip = skipNetns("exits", "curl");

const FAR = "198.51.100.7";

/** Says on TCP (as a page) and UDP which of the two it is. */
const server = (name: string) => `
require("node:http").createServer((_, answer) => answer.end("${name}")).listen(80, "${FAR}");
const socket = require("node:dgram").createSocket("udp4").bind(9, "${FAR}");
socket.on("message", (_, { address, port }) => socket.send("${name}", port, address));
`;

/** Prints the answer to one datagram, asking again twice a second. */
const ask = (port: number) => `
const socket = require("node:dgram").createSocket("udp4");
const say = () => socket.send("?", ${port}, "127.0.0.1");
socket.on("message", (text) => { console.log(String(text)); process.exit(); });
say(); setInterval(say, 500); setTimeout(() => { console.log("silence"); process.exit(); }, 5000);
`;

const NODES = ["first", "second", "marked", "gone"] as const;
const tcpPort = (node: string) => 8001 + NODES.indexOf(node as "first");
const udpPort = (node: string) => 9001 + NODES.indexOf(node as "first");

const CONFIG = `
mixed-port: 7890
external-controller: 127.0.0.1:9090
proxies:
  - { name: first, type: direct, interface-name: up1 }
  - { name: second, type: direct, interface-name: up2 }
  - { name: marked, type: direct, routing-mark: 42 }
  - { name: gone, type: direct, interface-name: nowhere0 }
listeners:
${NODES.map((node) => `  - { name: to ${node}, type: http, listen: 127.0.0.1, port: ${tcpPort(node)}, proxy: ${node} }`).join("\n")}
tunnels:
  - udp,127.0.0.1:9000,${FAR}:9
${NODES.map((node) => `  - udp,127.0.0.1:${udpPort(node)},${FAR}:9,${node}`).join("\n")}
rules: ["MATCH,DIRECT"]
`;

/** A namespace behind one uplink, with the far address and its server. */
async function openFar(home: Netns, at: 1 | 2): Promise<Netns> {
  const far = await openNetns(`far${at}`);
  const [near, there] = [`10.77.${at}.1/24`, `10.77.${at}.2/24`];
  await link(
    { netns: home, device: `up${at}`, addresses: [near] },
    { netns: far, device: "down0", addresses: [there] },
  );
  await far.ip(`address add ${FAR}/32 dev lo`);
  await home.ip(`route add ${FAR} via 10.77.${at}.2 dev up${at} metric ${at}`);
  far.start(process.execPath, "-e", server(`uplink ${at}`));
  return far;
}

test(
  "each node leaves by its own interface or mark; a missing interface costs that node only",
  { skip },
  async () => {
    await using home = await openNetns("exits");
    await using _one = await openFar(home, 1);
    await using _two = await openFar(home, 2);
    await home.ip(`route add ${FAR} via 10.77.2.2 dev up2 table 42`, "rule add fwmark 42 table 42");
    await using core = await startCore(CONFIG, { prefix: home.prefix });
    const get = (port: number) =>
      home.run(
        "curl",
        "-sS",
        "--retry",
        "5",
        "--retry-all-errors",
        "-m",
        "20",
        "-x",
        `127.0.0.1:${port}`,
        `http://${FAR}/`,
      );
    const datagram = async (port: number) => (await home.run(process.execPath, "-e", ask(port))).trim();

    assert.equal(await get(7890), "uplink 1", "the routing table decides");
    const tcp = await Promise.all(["first", "second", "marked"].map((node) => get(tcpPort(node))));
    assert.deepEqual(tcp, ["uplink 1", "uplink 2", "uplink 2"]);
    const udp = await Promise.all([9000, ...NODES.map(udpPort)].map(datagram));
    assert.deepEqual(udp, ["uplink 1", "uplink 1", "uplink 2", "uplink 2", "silence"]);
    const refused = await home.run("curl", "-s", "-x", `127.0.0.1:${tcpPort("gone")}`, `http://${FAR}/`);
    assert.match(refused, /^The (connection to the )?destination/);
    await core.shows(/nowhere0.*ENODEV/);

    const patch = ["-X", "PATCH", "-d", '{"interface-name":"up2"}', "http://127.0.0.1:9090/configs"];
    await home.run("curl", "-sSf", ...patch);
    assert.equal(await get(7890), "uplink 2", "PATCH interface-name");
    assert.equal(await get(tcpPort("first")), "uplink 1", "a node's own interface stays");

    await home.ip("link set up2 down");
    assert.equal(await get(tcpPort("first")), "uplink 1");
    assert.doesNotMatch(core.output(), /a fault of weir/);
  },
);
