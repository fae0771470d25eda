import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAuthority, parseConnectTarget, parsePlainTarget } from "./authority.ts";

test("authority", () => {
  assert.deepEqual(parseAuthority("Example.COM.:8080", 80), { host: "example.com", ip: null, port: 8080 });
  assert.deepEqual(parseAuthority("127.0.0.1", 80), { host: null, ip: "127.0.0.1", port: 80 });
  assert.deepEqual(parseAuthority("[2001:DB8::1]:443", 80), { host: null, ip: "2001:db8::1", port: 443 });
  assert.deepEqual(parseAuthority("my_host-1", 1), { host: "my_host-1", ip: null, port: 1 });
  for (const text of [
    "",
    ":80",
    "a:",
    "a:0",
    "a:65536",
    "a:b",
    "::1",
    "[::1",
    "[x]:1",
    "a b",
    "a/b",
    "u@a",
    "a\tb",
  ])
    assert.equal(parseAuthority(text, 80), null, text);
  assert.equal(parseAuthority("a".repeat(256), 80), null);
});

test("CONNECT target: ports by scheme", () => {
  assert.equal(parseConnectTarget("a")?.port, 80);
  assert.equal(parseConnectTarget("https://a")?.port, 443);
  assert.equal(parseConnectTarget("wss://a/")?.port, 443);
  assert.equal(parseConnectTarget("http://a")?.port, 80);
  assert.equal(parseConnectTarget("a/b"), null);
});

test("absolute-form", () => {
  const plain = (url: string, method = "GET") => {
    const target = parsePlainTarget(url, method);
    return target && [target.host, target.destination.port, target.path];
  };
  assert.deepEqual(plain("http://a.test"), ["a.test", 80, "/"]);
  assert.deepEqual(plain("HTTP://a.test:80/x?y#z"), ["a.test", 80, "/x?y"]);
  assert.deepEqual(plain("http://a.test:8080?q"), ["a.test:8080", 8080, "/?q"]);
  assert.deepEqual(plain("ws://[::1]:81/c"), ["[::1]:81", 81, "/c"]);
  assert.deepEqual(plain("http://a.test", "OPTIONS"), ["a.test", 80, "*"]);
  for (const url of [
    "/",
    "a.test",
    "https://a.test/",
    "ftp://a/",
    "http://",
    "http:///x",
    "http://u:p@a/",
    "http://a/ ",
    "http://a/x\r\ny",
    "http://a/\0",
  ])
    assert.equal(plain(url), null, url);
});
