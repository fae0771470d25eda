/** The examples of a REALITY server with managed users and of its client, as they stand, against each other. */
import assert from "node:assert/strict";
import { Agent, get } from "node:https";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { makeCertificate } from "../support/certificate.ts";
import { example, withPlaces } from "../support/examples.ts";
import { freePorts } from "../support/free-ports.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { startCore } from "../support/start-core.ts";
import { openTunnel } from "../support/tunnels.ts";
import { until } from "../support/until.ts";
import { openWebOrigin } from "../support/web-origin.ts";

test("a user is served, but not while disabled, and a client without the key sees the site", async () => {
  const { cert, key } = makeCertificate({ names: ["www.example.com"] });
  await using site = await openWebOrigin((_, answer) => answer.end("the site"), { tls: { cert, key } });
  await using echo = await openTcpOrigin((socket) => socket.pipe(socket));
  const [edge, admin, mixed, controller] = (await freePorts(4)) as [number, number, number, number];
  await using _server = await startCore(
    // Behind a real server's port, the local destinations of this test would be private ones.
    withPlaces(example("reality-server"), {
      "port: 8444": `port: ${edge}`,
      "127.0.0.1:9094": `127.0.0.1:${admin}`,
      "dest: www.example.com:443": `dest: 127.0.0.1:${site.port}`,
      "rules:\n": "rules:\n  - IP-CIDR,127.0.0.0/8,DIRECT\n",
    }),
  );
  const clientText = withPlaces(example("reality-client"), {
    "port: 8444": `port: ${edge}`,
    "mixed-port: 7895": `mixed-port: ${mixed}`,
    "127.0.0.1:9095": `127.0.0.1:${controller}`,
  });
  await using _client = await startCore(clientText);

  const api = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`http://127.0.0.1:${admin}/api/admin${path}`, {
      method,
      headers: { authorization: "Bearer another secret, of 32 bytes or more" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
    return (await answer.json()) as { users: { id: string; name: string; revision: number }[] };
  };
  const carried = async (): Promise<boolean> => {
    const socket = await openTunnel("socks5", mixed, "127.0.0.1", { host: "127.0.0.1", port: echo.port });
    const { promise: first, resolve } = Promise.withResolvers<string | null>();
    socket.on("data", (bytes: Buffer) => resolve(bytes.toString()));
    socket.on("error", () => resolve(null)).on("close", () => resolve(null));
    socket.resume().write("hello through the server");
    // An unknown client gets nothing, not even an end.
    const text = await Promise.race([first, delay(3000, null)]);
    socket.destroy();
    return text === "hello through the server";
  };
  await until("traffic through REALITY", carried);

  const page = await new Promise<{ body: string; names: string | undefined }>((resolve, reject) => {
    const agent = new Agent({ rejectUnauthorized: false, servername: "www.example.com" });
    get({ host: "127.0.0.1", port: edge, agent }, (answer) => {
      const names = (answer.socket as TLSSocket).getPeerCertificate().subjectaltname;
      answer.setEncoding("utf8").on("data", (body: string) => resolve({ body, names }));
    }).on("error", reject);
  });
  assert.deepEqual(page, { body: "the site", names: "DNS:www.example.com" });

  const [alice] = (await api("GET", "/users")).users;
  assert.equal(alice?.name, "alice");
  await api("PUT", `/users/${alice.id}`, { revision: alice.revision, enabled: false });
  assert.equal(await carried(), false, "a disabled user");
  const [now] = (await api("GET", "/users")).users;
  await api("PUT", `/users/${alice.id}`, { revision: now?.revision, enabled: true });
  await until("traffic again", carried);
});
