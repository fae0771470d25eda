/** The examples of VLESS Encryption, as they stand, against each other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect as tlsConnect } from "node:tls";
import { once } from "node:events";
import { example, withPlaces } from "../support/examples.ts";
import { freePorts } from "../support/free-ports.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";
import { openTunnel } from "../support/tunnels.ts";
import { openTlsOrigin } from "../support/vision.ts";

test(
  "plain bytes and TLS go through, and go on behind a reload of the server",
  { timeout: 60_000 },
  async () => {
    await using echo = await openTcpOrigin((socket) => socket.pipe(socket));
    await using secure = await openTlsOrigin("TLSv1.3", (socket) => socket.pipe(socket));
    const [relay, mixed, controller] = (await freePorts(3)) as [number, number, number];
    // Behind a real server's port, the local destinations of this test would be private ones.
    const serverText = withPlaces(example("encryption-server"), {
      "port: 8446": `port: ${relay}`,
      "rules:\n": "rules:\n  - IP-CIDR,127.0.0.0/8,DIRECT\n",
    });
    await using server = await startCore(serverText);
    await using _client = await startCore(
      withPlaces(example("encryption-client"), {
        "port: 8446": `port: ${relay}`,
        "mixed-port: 7896": `mixed-port: ${mixed}`,
        "127.0.0.1:9096": `127.0.0.1:${controller}`,
      }),
    );
    const tunnel = (port: number) => openTunnel("socks5", mixed, "127.0.0.1", { host: "127.0.0.1", port });

    for (const time of ["first", "by ticket", "behind a reload"]) {
      // Another user makes it another listener, whose clients come with the tickets of the old one.
      if (time === "behind a reload")
        await server.reload(
          withPlaces(serverText, { "users:\n": "users:\n      - { username: bob, uuid: bob }\n" }),
        );
      const socket = await tunnel(echo.port);
      socket.resume().write(time);
      assert.equal(String((await once(socket, "data"))[0]), time);
      socket.destroy();

      const inner = tlsConnect({
        socket: await tunnel(secure.destination.port),
        servername: "server.test",
        rejectUnauthorized: false,
      });
      await once(inner, "secureConnect");
      inner.write(time);
      assert.equal(String((await once(inner, "data"))[0]), time);
      inner.destroy();
    }
  },
);
