/** What a listener's connections may cost. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { RawClient } from "../support/raw-http.ts";
import { giveUpWhenStuck, plainServer } from "#api/listeners.ts";

test("a client that reads nothing of an answer loses the connection; a silent answer, and a connection in use, stay", async () => {
  const { promise: silent, resolve } = Promise.withResolvers<{ write(text: string): unknown }>();
  const server = plainServer((request, response) => {
    giveUpWhenStuck(response, 100);
    if (request.url === "/large") return void response.end(Buffer.alloc(50_000_000));
    response.flushHeaders();
    resolve(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const to = { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
  using quiet = await RawClient.open(to);
  quiet.send("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
  const stream = await silent;
  const gone = once(server, "connection").then(([socket]) => once(socket as NodeJS.EventEmitter, "close"));
  using stuck = await RawClient.open(to);
  stuck.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
  await stuck.until(/200 OK/);
  stuck.socket.pause();
  await gone;
  stream.write("still here");
  await quiet.until(/still here/);
  server.close();
  server.closeAllConnections();
});
