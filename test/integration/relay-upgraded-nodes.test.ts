/** Nodes behind an HTTP upgrade that workers dial by themselves: servers that do not switch are left to the event loop. */
import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import type { UpgradeRecipe } from "#core/wire-recipe.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { acceptOf } from "#transport/websocket/upgrade.ts";
import type { DecidingEngine } from "../support/deciding-engine.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { socksConnect } from "../support/socks-client.ts";
import { openTlsOrigin, tlsClient } from "../support/tls-origin.ts";
import { tlsProvider } from "../support/tls.ts";
import { openNodeEngine } from "../support/node-engine.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP nodes by workers: needs Linux";
const WAYS = [null, {}, { "client-fingerprint": "chrome" }];
const SWITCHES = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";

type Answer = (request: string, socket: Pick<Socket, "write" | "end">) => void;

const keyOf = (request: string): string => /Sec-WebSocket-Key: (\S+)/.exec(request)?.[1] ?? "";
const acceptField = (request: string): string => `Sec-WebSocket-Accept: ${acceptOf(keyOf(request))}\r\n`;

const BAD: readonly (readonly [what: string, isFramed: boolean, answer: Answer])[] = [
  ["a page", true, (_, socket) => socket.end("HTTP/1.1 404 Not Found\r\n\r\n")],
  ["an end", true, (_, socket) => socket.end()],
  [
    "another key",
    true,
    (_, socket) => socket.write(`${SWITCHES}Sec-WebSocket-Accept: ${acceptOf("")}\r\n\r\n`),
  ],
  ["no HTTP", true, (_, socket) => socket.write("SSH-2.0-none\r\n\r\n")],
  [
    "payload before the request",
    true,
    (request, socket) => socket.write(`${SWITCHES}${acceptField(request)}\r\nmore`),
  ],
  ["another protocol", false, (_, socket) => socket.write(SWITCHES.replace("websocket", "h2c") + "\r\n")],
];

const named = (way: object | null): string =>
  way === null ? "" : ` in TLS by ${Object.values(way).join("") || "the library"}`;

/** A server that answers to the head of a request. */
function openServer(way: object | null, answer: () => Answer) {
  const on = (socket: Socket): void => {
    let request = "";
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      request += chunk.toString("latin1");
      if (request.endsWith("\r\n\r\n")) answer()(request, socket);
    });
  };
  return way === null ? openTcpOrigin(on) : openTlsOrigin({}, on);
}

/** Everything leads through a Trojan node there. */
async function openEngine(port: number, way: object | null, upgrade: UpgradeRecipe): Promise<DecidingEngine> {
  const tls = way === null ? null : ((await tlsClient(tlsProvider, way)).recipe?.() ?? null);
  const trojan = recipe("trojan", { key: "a".repeat(56) });
  return await openNodeEngine(port, { ...trojan, under: { tls, upgrade } });
}

const place = {
  path: "/ws?x=1",
  host: "site.test:81",
  headers: { "User-Agent": "one", Host: "ignored", "X-More": "two" },
};

for (const way of WAYS) {
  test(`a server that does not switch is left to the event loop${named(way)}`, { skip }, async () => {
    let answer: Answer = () => {};
    await using server = await openServer(way, () => answer);
    for (const isFramed of [true, false]) {
      await using engine = await openEngine(server.port, way, { ...place, isFramed });
      let count = 0;
      for (const [what, framed, one] of BAD) {
        if (framed !== isFramed) continue;
        answer = one;
        await assert.rejects(socksConnect(engine.port, "127.0.0.1", 9));
        await until(what, () => engine.handedOver === count + 1);
        count++;
      }
      assert.equal(engine.served.length, 0);
    }
  });

  test(
    `the request is that of the event loop, and its answer may come in parts${named(way)}`,
    { skip },
    async () => {
      let asked = "";
      const answer: Answer = (request, socket) => {
        if (asked !== "") return; // of Trojan, in a frame
        asked = request;
        const head = `${SWITCHES}${acceptField(request)}\r\n`;
        for (const part of [head.slice(0, 20), head.slice(20)]) socket.write(part);
      };
      await using server = await openServer(way, () => answer);
      await using engine = await openEngine(server.port, way, { ...place, isFramed: true });
      const { client, status } = await socksConnect(engine.port, "127.0.0.1", 9);
      using _client = client;
      assert.equal(status, 0);
      assert.equal(
        asked.replace(keyOf(asked), "KEY"),
        [
          "GET /ws?x=1 HTTP/1.1",
          "Host: site.test:81",
          "User-Agent: one",
          "X-More: two",
          "Connection: Upgrade",
          "Upgrade: websocket",
          "Sec-WebSocket-Version: 13",
          "Sec-WebSocket-Key: KEY",
          "\r\n",
        ].join("\r\n"),
      );
    },
  );
}
