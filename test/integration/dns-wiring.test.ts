/** The DNS engine in the running program: fake addresses over reloads and restarts, the outbound `dns`, choices. */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { frameOf } from "#dns/frames.ts";
import { decodeMessage, type Message } from "#dns/message.ts";
import { addressesIn, askUdp, questionOf } from "../support/dns-client.ts";
import { freePorts } from "../support/free-ports.ts";
import { openRawClient, type RawClient } from "../support/raw-client.ts";
import { socksAssociate, socksConnect } from "../support/socks-client.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { address, openScripted, reply } from "./dns-kit.ts";

interface Settings {
  readonly dns: number;
  readonly controller: number;
  readonly mixed?: number;
  readonly range?: string;
  readonly storeFakeIp?: boolean;
  readonly storeSelected?: boolean;
  readonly mode?: string;
  readonly enable?: boolean;
  readonly nameserver?: string;
}

function configText(settings: Settings): string {
  const { dns, controller, mixed = 0, range = "198.18.0.1/16", mode = "fake-ip", enable = true } = settings;
  return `
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
log-level: debug
profile: { store-fake-ip: ${settings.storeFakeIp ?? true}, store-selected: ${settings.storeSelected ?? true} }
dns:
  enable: ${enable}
  listen: 127.0.0.1:${dns}
  enhanced-mode: ${mode}
  fake-ip-range: ${range}
  nameserver: ["${settings.nameserver ?? "rcode://refused"}"]
  default-nameserver: [127.0.0.1]
proxies:
  - { name: answers, type: dns }
proxy-groups:
  - { name: G, type: select, proxies: [DIRECT, REJECT] }
rules:
  - DST-PORT,53,answers
  - MATCH,DIRECT
`;
}

const first = async (port: number, name: string) => addressesIn(await askUdp(port, name))[0];

async function reload(core: Core, controller: number, text: string): Promise<void> {
  core.write(text);
  const url = `http://127.0.0.1:${controller}/configs?force=true`;
  const { status } = await fetch(url, { method: "PUT", body: "{}" });
  assert.equal(status, 204);
}

/** Ends the core as an administrator would and starts another with what it left in its home. */
async function restart(core: Core, text: string): Promise<Core> {
  assert.equal(await core.stop(), 0);
  const kept = mkdtempSync(join(tmpdir(), "weir-kept-"));
  try {
    cpSync(join(core.home, "weir-cache.db"), join(kept, "weir-cache.db"));
    return await startCore(text, { seed: (home) => cpSync(kept, home, { recursive: true }) });
  } finally {
    rmSync(kept, { recursive: true });
  }
}

test("dns.md §16.2 stored fake addresses survive a reload and a restart; another range starts over", async () => {
  const [dns, controller] = (await freePorts(2)) as [number, number];
  await using one = await startCore(configText({ dns, controller }));
  assert.equal(await first(dns, "a.example"), "198.18.0.4");
  assert.equal(await first(dns, "b.example"), "198.18.0.5");
  await reload(one, controller, configText({ dns, controller, nameserver: "rcode://success" }));
  assert.equal(await first(dns, "b.example"), "198.18.0.5");
  assert.equal(await first(dns, "c.example"), "198.18.0.6");
  await using two = await restart(one, configText({ dns, controller }));
  assert.equal(await first(dns, "b.example"), "198.18.0.5");
  assert.equal(await first(dns, "d.example"), "198.18.0.7");
  const other = configText({ dns, controller, range: "10.99.0.1/16" });
  await using three = await restart(two, other);
  assert.equal(await first(dns, "d.example"), "10.99.0.4");
  await using four = await restart(three, other);
  assert.equal(await first(dns, "e.example"), "10.99.0.5");
  await fetch(`http://127.0.0.1:${controller}/cache/fakeip/flush`, { method: "POST" });
  await using five = await restart(four, other);
  assert.equal(await first(dns, "e.example"), "10.99.0.4");
  assert.equal(await five.stop(), 0);
});

test("without store-fake-ip nothing is kept over a restart, but a reload keeps the pool and can begin to store", async () => {
  const [dns, controller] = (await freePorts(2)) as [number, number];
  await using one = await startCore(configText({ dns, controller, storeFakeIp: false }));
  assert.equal(await first(dns, "a.example"), "198.18.0.4");
  assert.equal(await first(dns, "b.example"), "198.18.0.5");
  await reload(one, controller, configText({ dns, controller }));
  await using two = await restart(one, configText({ dns, controller, storeFakeIp: false }));
  assert.equal(await first(dns, "b.example"), "198.18.0.4");
  assert.equal(await two.stop(), 0);
  await using _three = await restart(one, configText({ dns, controller }));
  assert.equal(await first(dns, "b.example"), "198.18.0.5");
});

const answerIn = async (client: RawClient): Promise<Message> =>
  decodeMessage(await client.read((await client.read(2)).readUInt16BE()));

test("connections that outlive a reload are answered by the new engine, and none are given one address twice", async () => {
  const [dns, controller, mixed] = (await freePorts(3)) as [number, number, number];
  const text = configText({ dns, controller, mixed });
  await using core = await startCore(text);
  const direct = await openRawClient(dns);
  const { client: relayed } = await socksConnect(mixed, "192.0.2.53", 53);
  using _direct = direct;
  using _relayed = relayed;
  const asked = async (client: RawClient, name: string) => {
    client.send(frameOf(questionOf(name)));
    return addressesIn(await answerIn(client))[0];
  };
  assert.equal(await asked(direct, "a.example"), "198.18.0.4");
  assert.equal(await asked(relayed, "b.example"), "198.18.0.5");
  await reload(core, controller, text.replace("rcode://refused", "rcode://success"));
  assert.equal(await asked(direct, "c.example"), "198.18.0.6");
  assert.equal(await asked(relayed, "d.example"), "198.18.0.7");
  assert.equal(await first(dns, "e.example"), "198.18.0.8");
  await reload(core, controller, configText({ dns, controller, mixed, enable: false }));
  direct.send(frameOf(questionOf("f.example")));
  assert.equal((await direct.rest()).length, 0);
});

test("a question that is under way when the engine is replaced is answered", async () => {
  const [dns, controller] = (await freePorts(2)) as [number, number];
  const [asked, reloaded] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await using upstream = await openScripted(async (query) => {
    asked.resolve();
    await reloaded.promise;
    return reply(query, [address("slow.example", "203.0.113.7")]);
  });
  const settings = { dns, controller, mode: "redir-host", nameserver: `127.0.0.1:${upstream.port}` };
  await using core = await startCore(configText(settings));
  const answer = askUdp(dns, "slow.example");
  await asked.promise;
  await reload(core, controller, configText({ ...settings, range: "198.18.0.1/15" }));
  reloaded.resolve();
  assert.deepEqual(addressesIn(await answer), ["203.0.113.7"]);
});

test("redir-host: a reload keeps which name an address belongs to", async () => {
  const [dns, controller, mixed] = (await freePorts(3)) as [number, number, number];
  await using upstream = await openScripted((query) =>
    reply(query, [address(query.questions[0]?.name ?? "", "203.0.113.77")]),
  );
  const nameserver = `127.0.0.1:${upstream.port}`;
  const settings = { dns, controller, mixed, mode: "redir-host", nameserver };
  const rejecting = `${configText(settings).replace("MATCH,DIRECT", "DOMAIN,mapped.example,REJECT\n  - MATCH,DIRECT")}`;
  await using core = await startCore(rejecting);
  assert.equal(await first(dns, "mapped.example"), "203.0.113.77");
  await reload(core, controller, rejecting.replace("198.18.0.1/16", "198.18.0.1/15"));
  const { client } = await socksConnect(mixed, "203.0.113.77", 81);
  client[Symbol.dispose]();
  await core.shows(/mapped\.example:81 match Domain\(mapped\.example\) using REJECT/);
});

test("profile.store-selected: kept over a restart, or for the life of the process only", async () => {
  const [dns, controller] = (await freePorts(2)) as [number, number];
  const now = async () => {
    const answer = await fetch(`http://127.0.0.1:${controller}/proxies/G`);
    return ((await answer.json()) as { now: string }).now;
  };
  const select = (name: string) =>
    fetch(`http://127.0.0.1:${controller}/proxies/G`, { method: "PUT", body: JSON.stringify({ name }) });
  const forgetful = configText({ dns, controller, storeSelected: false });
  await using one = await startCore(configText({ dns, controller }));
  await select("REJECT");
  await using two = await restart(one, configText({ dns, controller }));
  assert.equal(await now(), "REJECT");
  await using three = await restart(two, forgetful);
  assert.equal(await now(), "DIRECT", "what was stored is not used");
  await select("REJECT");
  await reload(three, controller, forgetful.replace("rcode://refused", "rcode://success"));
  assert.equal(await now(), "REJECT");
  await using four = await restart(three, forgetful);
  assert.equal(await now(), "DIRECT");
  assert.equal(await four.stop(), 0);
});

test("the outbound dns answers TCP and UDP in the place of the server that was asked", async () => {
  const [dns, controller, mixed] = (await freePorts(3)) as [number, number, number];
  await using core = await startCore(configText({ dns, controller, mixed }));
  using udp = await socksAssociate(mixed);
  udp.send(Buffer.from("no question"), "192.0.2.53", 53);
  udp.send(questionOf("udp.example"), "192.0.2.53", 53);
  const { payload, from } = await udp.next();
  assert.equal(from, "192.0.2.53:53");
  assert.deepEqual([...addressesIn(decodeMessage(payload))], ["198.18.0.4"]);
  const { client, status } = await socksConnect(mixed, "192.0.2.53", 53);
  using _client = client;
  assert.equal(status, 0);
  for (const [id, name] of [
    [1, "tcp.example"],
    [2, "udp.example"],
  ] as const) {
    client.send(frameOf(questionOf(name, 1, id)));
    const answer = await answerIn(client);
    assert.deepEqual(
      [answer.id, ...addressesIn(answer)],
      [id, name === "udp.example" ? "198.18.0.4" : "198.18.0.5"],
    );
  }
  client.send(frameOf(Buffer.from("no question")));
  assert.equal((await client.rest()).length, 0, "nonsense ends the connection");
  await reload(core, controller, configText({ dns, controller, mixed, enable: false }));
  const off = await socksConnect(mixed, "192.0.2.53", 53);
  using _off = off.client;
  assert.notEqual(off.status, 0);
  await core.shows(/answers answers DNS, but the dns section is off: set dns\.enable/);
});
