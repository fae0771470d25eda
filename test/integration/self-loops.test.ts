/** Ways that lead back to the program itself come to an end within a few hops, and the Controller answers meanwhile. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { test } from "node:test";
import { MOST_HOPS } from "#net/dial/self-dials.ts";
import { freePorts } from "../support/free-ports.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { until } from "../support/until.ts";

const UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
const CLIENTS = 20;

interface Ports {
  /** Of the mixed listener. */
  readonly mixed: number;
  readonly one: number;
  readonly two: number;
}

interface Loop {
  readonly config: (ports: Ports) => string;
  /** What clients connect to; they ask the mixed listener by SOCKS. */
  readonly at: keyof Ports;
  /** A fallback sends no byte of its own. */
  readonly isSilent?: boolean;
}

const node = (name: string, rest: string, port: number, server = "127.0.0.1"): string =>
  `  - { name: ${name}, server: ${server}, port: ${port}, ${rest} }`;
const all = (name: string): string => `rules: ["MATCH,${name}"]`;
const tunnel = (from: number, to: string | number): string =>
  `  - { network: [tcp, udp], address: 127.0.0.1:${from}, target: ${to} }`;

const LOOPS: Readonly<Record<string, Loop>> = {
  "a node": {
    at: "mixed",
    config: ({ mixed }) => `proxies:\n${node("self", "type: socks5", mixed)}\n${all("self")}`,
  },
  "a node by name, in a group": {
    at: "mixed",
    config: ({ mixed }) =>
      `proxies:\n${node("self", "type: http", mixed, "localhost")}\nproxy-groups:\n  - { name: G, type: select, proxies: [self] }\n${all("G")}`,
  },
  "a node by an unspecified address": {
    at: "mixed",
    config: ({ mixed }) => `proxies:\n${node("self", "type: socks5", mixed, "0.0.0.0")}\n${all("self")}`,
  },
  "two nodes that lead to each other": {
    at: "mixed",
    config: ({ mixed, one }) =>
      `listeners:\n  - { name: in1, type: mixed, listen: 127.0.0.1, port: ${one} }\nproxies:\n${node("a", "type: socks5", one)}\n${node("b", "type: socks5", mixed)}\nrules: ["IN-NAME,in1,b", "MATCH,a"]`,
  },
  "a chain": {
    at: "mixed",
    config: ({ mixed }) =>
      `proxies:\n${node("a", "type: socks5, dialer-proxy: b", mixed)}\n${node("b", "type: socks5", mixed)}\n${all("a")}`,
  },
  "a node that puts all into one connection": {
    at: "mixed",
    config: ({ one }) =>
      `listeners:\n  - { name: in1, type: vless, listen: 127.0.0.1, port: ${one}, allow-insecure: true, users: [{ username: u, uuid: ${UUID} }] }\nproxies:\n${node("self", `type: vless, uuid: ${UUID}, smux: { enabled: true, protocol: smux, max-streams: 64 }`, one)}\n${all("self")}`,
  },
  "a tunnel to itself": {
    at: "one",
    config: ({ one }) => `tunnels:\n${tunnel(one, `127.0.0.1:${one}`)}\n${all("DIRECT")}`,
  },
  "a tunnel to itself by name": {
    at: "one",
    config: ({ one }) => `tunnels:\n${tunnel(one, `localhost:${one}`)}\n${all("DIRECT")}`,
  },
  "two tunnels to each other": {
    at: "one",
    config: ({ one, two }) =>
      `tunnels:\n${tunnel(one, `127.0.0.1:${two}`)}\n${tunnel(two, `127.0.0.1:${one}`)}\n${all("DIRECT")}`,
  },
  "a tunnel into a node": {
    at: "one",
    config: ({ one, two, mixed }) =>
      `tunnels:\n${tunnel(one, `127.0.0.1:${two}`)}\nproxies:\n${node("self", "type: socks5", mixed)}\n${all("self")}`,
  },
  "a fallback to the listener": {
    at: "one",
    isSilent: true,
    config: ({ one }) =>
      `listeners:\n  - { name: in1, type: vless, listen: 127.0.0.1, port: ${one}, allow-insecure: true, users: [{ username: u, uuid: ${UUID} }], fallbacks: [{ dest: ${one} }] }\n${all("DIRECT")}`,
  },
};

const ASK = Buffer.concat([
  Buffer.of(5, 1, 0, 5, 1, 0, 3, 11),
  Buffer.from("far.invalid"),
  Buffer.of(0, 80),
  Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n".padEnd(128)),
]);

/** Settles when the core has let go of it. */
async function lost(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  socket.resume();
  socket.write(ASK);
  await new Promise((resolve) => socket.once("close", resolve));
}

const descriptors = ({ pid }: Core): number => readdirSync(`/proc/${pid}/fd`).length;

for (const relay of ["auto", "portable"])
  for (const [name, { config, at, isSilent = false }] of Object.entries(LOOPS))
    test(`relay: ${relay}: ${name} ends`, { timeout: 60_000 }, async () => {
      const [mixed, one, two] = (await freePorts(3)) as [number, number, number];
      const ports = { mixed, one, two };
      await using core = await startCore(
        `relay: ${relay}\nlog-level: debug\nmixed-port: ${mixed}\nexternal-controller: 127.0.0.1:0\n${config(ports)}\n`,
      );
      const controller = await core.controllerPort();
      const before = descriptors(core);
      let most = 0;
      const watch = setInterval(() => (most = Math.max(most, descriptors(core))), 5);
      try {
        const clients = Promise.all(Array.from({ length: CLIENTS }, () => lost(ports[at])));
        const { status } = await fetch(`http://127.0.0.1:${controller}/version`);
        assert.equal(status, 200);
        await clients;
      } finally {
        clearInterval(watch);
      }
      // Of each hop both ends and, at most, a pair of pipes.
      const bound = CLIENTS * (MOST_HOPS + 2) * 6;
      assert.ok(most - before <= bound, `${most - before} descriptors, ${bound} at most`);
      if (!isSilent) await core.shows(/a loop: more than/);
      await until(
        () => `${before} descriptors, not ${descriptors(core)}`,
        () => descriptors(core) <= before + 16,
      );
    });

test("datagrams of tunnels to themselves and to each other end", { timeout: 60_000 }, async () => {
  const [one, two, three] = (await freePorts(3)) as [number, number, number];
  const tunnels = [
    tunnel(one, `127.0.0.1:${one}`),
    tunnel(two, `localhost:${three}`),
    tunnel(three, `0.0.0.0:${two}`),
  ];
  await using core = await startCore(
    `log-level: debug\nexternal-controller: 127.0.0.1:0\ntunnels:\n${tunnels.join("\n")}\n${all("DIRECT")}\n`,
  );
  const before = descriptors(core);
  const socket = createSocket("udp4");
  for (let count = 0; count < 200; count++)
    for (const port of [one, two]) socket.send("round", port, "127.0.0.1");
  await once(socket, "listening");
  await core.shows(new RegExp(String.raw`\[UDP\] 127\.0\.0\.1:\d+ --> 127\.0\.0\.1:${one}`));
  const { status } = await fetch(`http://127.0.0.1:${await core.controllerPort()}/version`);
  assert.equal(status, 200);
  const sessions = (): number => core.output().match(/\[UDP\] .*-->/g)?.length ?? 0;
  await until("hops", () => sessions() >= 2 * MOST_HOPS);
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, 500);
  await promise;
  assert.ok(sessions() <= 2 * (MOST_HOPS + 2), `${sessions()} sessions`);
  assert.ok(descriptors(core) - before <= 4 * (MOST_HOPS + 2));
  socket.close();
});
