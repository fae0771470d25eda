import assert from "node:assert/strict";
import { test } from "node:test";
import { parseQuestion } from "./question.ts";

const name = (host: string, port: number) => ({ host, ip: null, port });
const address = (ip: string, port: number) => ({ host: null, ip, port });

test("questions as people type them", () => {
  const rows: [string, unknown][] = [
    ["Example.org", name("example.org", 443)],
    [" example.org. ", name("example.org", 443)],
    ["example.org:80", name("example.org", 80)],
    ["localhost", name("localhost", 443)],
    ["_srv._tcp.example.org", name("_srv._tcp.example.org", 443)],
    ["bücher.example", name("xn--bcher-kva.example", 443)],
    ["1.2.3.4:53", address("1.2.3.4", 53)],
    ["[2001:db8::1]:53", address("2001:db8::1", 53)],
    ["2001:db8::1", address("2001:db8::1", 443)],
    ["https://Example.org/a?b#c", name("example.org", 443)],
    ["http://user:word@example.org/", name("example.org", 80)],
    ["http://example.org:8080", name("example.org", 8080)],
    ["https://[2001:db8::1]/", address("2001:db8::1", 443)],
    ["wss://example.org:9/x", name("example.org", 9)],
    ["ssh://example.org:22", name("example.org", 22)],
    ["ssh://example.org", name("example.org", 443)],
    ["ssh://bücher.example:22", name("xn--bcher-kva.example", 22)],
  ];
  for (const [text, expected] of rows) assert.deepEqual(parseQuestion(text), expected, text);
});

test("a port from elsewhere counts where the text says none", () => {
  assert.deepEqual(parseQuestion("example.org", 53), name("example.org", 53));
  assert.deepEqual(parseQuestion("example.org:80", 53), name("example.org", 80));
  assert.deepEqual(parseQuestion("http://example.org", 53), name("example.org", 80));
});

test("what is no destination gets a sentence, and nothing of a URL is repeated", () => {
  const wrong = [
    ..."| |a b|a:b:c|[nonsense]:1|[example.org]|a.com:70000|a..b|-a.org|a-.org|exa mple.org|a@b.org".split(
      "|",
    ),
    ..."example.org/path|999.1.1.1|1.2.3|*.example.org|DOMAIN,a.org|https://|http://a b/".split("|"),
    `${"a".repeat(64)}.org`,
    "ssh://%zz/",
    `${"a.".repeat(130)}org`,
    "https://user:token@-bad-.org/secret",
  ];
  for (const text of wrong) {
    const question = parseQuestion(text);
    assert.ok("fault" in question, `${text}: ${JSON.stringify(question)}`);
    assert.match(question.fault, /^expected a name, an address, host:port/);
    assert.doesNotMatch(question.fault, /token|secret/);
  }
});
