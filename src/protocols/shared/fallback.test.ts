import assert from "node:assert/strict";
import { test } from "node:test";
import * as z from "zod";
import { LOOPBACK_V4, parseIp } from "#net/address/ip.ts";
import type { Ip } from "#core/session.ts";
import { proxyHeader } from "#net/listen/proxy-header.ts";
import { chooseFallback, fallbackFields } from "./fallback.ts";

const parse = (fallbacks: unknown[]) => z.object(fallbackFields).parse({ fallbacks }).fallbacks;
const first = Buffer.from("GET /web?x=1 HTTP/1.1\r\n");

test("name, then ALPN, then path; empty entries are the defaults", () => {
  const all = parse([
    { dest: 1 },
    { dest: 2, alpn: "h2" },
    { dest: 3, path: "/web" },
    { dest: "10.0.0.1:4", name: "a.test" },
    { dest: 5, name: "www.a.test", alpn: "h2" },
  ]);
  const port = (serverName: string | null, alpn: string | null, bytes = first) =>
    chooseFallback(all, { serverName, alpn, first: bytes })?.dest.port ?? null;
  assert.equal(port(null, null), 3);
  assert.equal(port(null, null, Buffer.from("nonsense")), 1);
  assert.equal(port(null, "h2"), 2);
  assert.equal(port("a.test", null), 4);
  assert.equal(port("x.a.test", null), 4); // contained in it
  assert.equal(port("www.a.test", "h2"), 5);
  assert.equal(port("www.a.test", null), null); // that name has no default
  assert.equal(chooseFallback([], { serverName: null, alpn: null, first }), null);
});

test("destinations are a port or host:port", () => {
  assert.equal(parse([{ dest: "web.test:80" }])[0]?.dest.host, "web.test");
  for (const dest of ["web.test", "70000", "x:0", ""])
    assert.throws(() => parse([{ dest }]), /port or host:port/);
});

test("PROXY protocol, both versions", () => {
  const source = { ip: "10.1.2.3" as Ip, port: 1000 };
  const local = { ip: LOOPBACK_V4, port: 443 };
  assert.equal(String(proxyHeader(1, source, local)), "PROXY TCP4 10.1.2.3 127.0.0.1 1000 443\r\n");
  assert.equal(
    proxyHeader(2, source, local).toString("hex"),
    "0d0a0d0a000d0a515549540a2111000c0a0102037f00000103e801bb",
  );
  const v6 = { ip: parseIp("2001:db8::1") as Ip, port: 1 };
  assert.equal(proxyHeader(2, v6, local).length, 16 + 36);
});
