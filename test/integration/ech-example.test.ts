/** The examples of a server with Encrypted ClientHello and of its client, as they stand, against each other. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { freePorts } from "../support/free-ports.ts";
import { nativeTls } from "../support/native-tls.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";
import { openTunnel } from "../support/tunnels.ts";

/** Only places of this machine are put in. */
function example(name: string, places: Readonly<Record<string, string>>): string {
  let text = readFileSync(new URL(`../../examples/${name}.yaml`, import.meta.url), "utf8");
  for (const [from, to] of Object.entries(places)) {
    assert.ok(text.includes(from), from);
    text = text.replaceAll(from, to);
  }
  return text;
}

test("the client reaches what it asks for", { skip: nativeTls === null && "needs FFI" }, async () => {
  await using echo = await openTcpOrigin((socket) => socket.pipe(socket));
  const [edge, mixed, first, second] = (await freePorts(4)) as [number, number, number, number];
  await using _server = await startCore(
    example("ech-server", {
      "port: 8445": `port: ${edge}`,
      "127.0.0.1:9096": `127.0.0.1:${first}`,
      // Behind a real server's port, the local destinations of this test would be private ones.
      "rules:\n": "rules:\n  - IP-CIDR,127.0.0.0/8,DIRECT\n",
    }),
  );
  await using _client = await startCore(
    example("ech-client", {
      "port: 8445": `port: ${edge}`,
      "mixed-port: 7896": `mixed-port: ${mixed}`,
      "127.0.0.1:9097": `127.0.0.1:${second}`,
    }),
  );
  const socket = await openTunnel("socks5", mixed, "127.0.0.1", { host: "127.0.0.1", port: echo.port });
  socket.resume().write("through both");
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.equal(String(answer), "through both");
  socket.destroy();
});
