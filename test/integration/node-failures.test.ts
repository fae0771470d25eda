/** What a client is told when a dial fails: whether it was the destination or the node on the way. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { freePorts } from "../support/free-ports.ts";
import { openRawClient } from "../support/raw-client.ts";
import { startCore } from "../support/start-core.ts";

test("a node that cannot be reached is not called the destination", async () => {
  const [mixed, closed, dead] = (await freePorts(3)) as [number, number, number];
  await using _core = await startCore(`
mixed-port: ${mixed}
dns: { enable: true, nameserver: ["127.0.0.1:${dead}"], use-hosts: true }
hosts: { "node.test": 127.0.0.1 }
proxies:
  - { name: nameless, type: http, server: no-such-node.invalid, port: 1 }
  - { name: closed, type: socks5, server: node.test, port: ${closed} }
  - { name: behind, type: http, server: 127.0.0.1, port: 1, dialer-proxy: closed }
rules:
  - DOMAIN,one.test,nameless
  - DOMAIN,two.test,closed
  - DOMAIN,three.test,behind
  - DOMAIN,four.invalid,DIRECT
  - MATCH,DIRECT
`);
  const rows = [
    ["one.test:443", "The proxy node on the way has no address."],
    ["two.test:443", "The proxy node on the way refused the connection."],
    ["three.test:443", "The proxy node on the way refused the connection."],
    ["four.invalid:443", "The destination has no address."],
    [`127.0.0.1:${closed}`, "The destination refused the connection."],
  ] as const;
  for (const [target, text] of rows) {
    using client = await openRawClient(mixed);
    client.send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n\r\n`);
    const answer = await client.until(".\n");
    assert.match(answer, /^HTTP\/1\.1 502 Bad Gateway\r\n/, target);
    assert.equal(answer.split("\r\n\r\n")[1], `${text}\n`, target);
  }
});
