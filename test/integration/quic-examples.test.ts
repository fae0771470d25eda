/** The examples of servers over QUIC and of their clients, as they stand, against each other. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { example, withPlaces } from "../support/examples.ts";
import { freePorts } from "../support/free-ports.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";
import { openTunnel } from "../support/tunnels.ts";
import { until } from "../support/until.ts";

const SKIP = process.platform === "linux" ? false : "SKIP libssl by FFI: only on Linux";

const EXAMPLES = [
  { protocol: "hysteria2", port: 8445, mixed: 7896, controller: 9096 },
  { protocol: "tuic", port: 8447, mixed: 7898, controller: 9098 },
];

async function echoes(socket: Socket, text: string): Promise<void> {
  socket.write(text);
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.equal(answer.toString(), text);
}

for (const { protocol, port, mixed: mixedPort, controller: controllerPort } of EXAMPLES)
  test(
    `${protocol}: a user is carried, and stays connected when the listener is changed by a reload`,
    { skip: SKIP },
    async () => {
      await using echo = await openTcpOrigin((socket) => socket.pipe(socket));
      const [edge, mixed, controller] = (await freePorts(3)) as [number, number, number];
      const serverText = withPlaces(example(`${protocol}-server`), {
        [`port: ${port}`]: `port: ${edge}`,
        // Behind a real server's port, the local destinations of this test would be private ones.
        "rules:\n": "rules:\n  - IP-CIDR,127.0.0.0/8,DIRECT\n",
      });
      await using server = await startCore(serverText);
      await using _client = await startCore(
        withPlaces(example(`${protocol}-client`), {
          [`port: ${port}`]: `port: ${edge}`,
          [`mixed-port: ${mixedPort}`]: `mixed-port: ${mixed}`,
          [`127.0.0.1:${controllerPort}`]: `127.0.0.1:${controller}`,
        }),
      );
      const open = async (): Promise<Socket> => {
        const to = { host: "127.0.0.1", port: echo.port };
        const socket = await openTunnel("socks5", mixed, "127.0.0.1", to);
        return socket.on("error", () => {}).resume();
      };
      const first = await open();
      await echoes(first, "hello through the server");
      await server.reload(withPlaces(serverText, { "a-password-for-guests": "another-password" }));
      await echoes(first, "still there");
      const second = await open();
      await echoes(second, "and a new one");
      await server.reload(withPlaces(serverText, { "a-password-of-alice": "no-longer-hers" }));
      await until("the end of hers", () => first.destroyed && second.destroyed);
    },
  );
