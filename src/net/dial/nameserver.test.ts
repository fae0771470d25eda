import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { urlText } from "../../../test/support/url-texts.ts";
import { ConfigError } from "#core/errors.ts";
import { needsNoResolver, nameserverKey, parseNameserver, withoutUnsupported } from "./nameserver.ts";
import { parseConditions, parseFakeIpRule } from "./dns-policy.ts";

const parse = (text: string) => parseNameserver(text, () => {});

test("every form of configuration.md §6.2", () => {
  const forms: readonly (readonly [text: string, shown: string])[] = [
    ["1.2.3.4", "udp://1.2.3.4:53"],
    ["dns.example.org", "udp://dns.example.org:53"],
    ["dns.example.org:5353", "udp://dns.example.org:5353"],
    ["2001:DB8::1", "udp://[2001:db8::1]:53"],
    ["[2001:db8::1]:54", "udp://[2001:db8::1]:54"],
    ["UDP://1.2.3.4", "udp://1.2.3.4:53"],
    ["tcp://1.2.3.4:5300", "tcp://1.2.3.4:5300"],
    ["tls://Dns.Example.org", "tls://dns.example.org:853"],
    ["https://dns.example.org/dns-query?a=b", "https://dns.example.org:443/dns-query"],
    ["https://me:pass@[2001:db8::1]:8443/q", "https://[2001:db8::1]:8443/q"],
    ["http://1.2.3.4/q", "http://1.2.3.4:80/q"],
    ["quic://dns.example.org", "quic://dns.example.org:853"],
    ["h3://dns.example.org/q", "h3://dns.example.org:443/q"],
    ["https://1.1.1.1/q#h3=true", "h3://1.1.1.1:443/q"],
    ["system", "system"],
    ["system://", "system"],
    ["dhcp://system", "system"],
    ["dhcp://en0", "dhcp://en0"],
    ["rcode://refused", "rcode://refused"],
    ["tls://1.1.1.1#Proxy 🚀&skip-cert-verify=true", "tls://1.1.1.1:853#Proxy 🚀"],
    ["1.1.1.1#RULES", "udp://1.1.1.1:53#RULES"],
  ];
  for (const [text, shown] of forms) assert.equal(parse(text).text, shown, text);
});

test("parameters", () => {
  const text =
    "https://me:p%40ss@1.1.1.1/q#exit&h3=true&skip-cert-verify=true&name-cert-verify=a.org&ecs=10.1.2.3/24" +
    "&ecs-override=true&disable-ipv6=true&disable-ipv4=false&disable-qtype-65=true&disable-reuse=true";
  const {
    userInfo,
    exit,
    http3,
    skipCertVerify,
    nameCertVerify,
    ecs,
    ecsOverride,
    disabledTypes,
    disableReuse,
  } = parse(text);
  assert.deepEqual(
    [userInfo, exit, http3, skipCertVerify, nameCertVerify, ecsOverride, disabledTypes, disableReuse],
    ["me:p@ss", "exit", true, true, "a.org", true, [28, 65], true],
  );
  assert.deepEqual(ecs, { ip: "10.1.2.3", bits: 24 });
  assert.deepEqual(parse("1.1.1.1#ecs=2001:db8::1").ecs, { ip: "2001:db8::1", bits: 128 });
  const warnings: string[] = [];
  assert.equal(parseNameserver("1.1.1.1#ecs=nonsense&what=1", (text) => void warnings.push(text)).ecs, null);
  assert.match(warnings.join(), /ecs=nonsense.*unknown nameserver parameter "what"/);
  const clear = parseNameserver("tls://1.1.1.1#h3=true", (text) => void warnings.push(text));
  assert.equal(clear.http3, false);
  assert.match(warnings.at(-1) ?? "", /h3 means nothing to tls/);
  assert.equal(nameserverKey(parse("h3://1.1.1.1/q")), nameserverKey(parse("https://1.1.1.1/q#h3=true")));
});

test("what is wrong is said, and never with the password", () => {
  for (const [text, why] of [
    ["foo://1.1.1.1", /unknown DNS scheme "foo"/],
    ["rcode://nothing", /unknown rcode "nothing"/],
    ["dhcp://", /needs the name of an interface/],
    ["1.1.1.1:0", /outside 1 to 65535/],
    ["1.1.1.1:70000", /outside 1 to 65535/],
    ["1.2.3", /neither an address nor a host name/],
    ["bad host", /neither an address nor a host name/],
    ["https://", /malformed DoH address/],
    ["https://me:secret@:99999/", /malformed DoH address/],
  ] as const) {
    assert.throws(
      () => parse(text),
      (error: unknown) =>
        error instanceof ConfigError && why.test(error.message) && !error.message.includes("secret"),
      text,
    );
  }
});

test("any text is a server or a ConfigError", () => {
  assert.throws(() => parse("https://a%ff:b@dns.example/dns-query"), /UTF-8 in percent-encoding/);
  fc.assert(
    fc.property(fc.oneof(fc.string(), urlText, fc.ipV6()), (text) => {
      try {
        assert.equal(typeof parse(text).text, "string");
      } catch (error) {
        assert.ok(error instanceof ConfigError, String(error));
      }
    }),
  );
});

test("entries that mean the same are one; default servers need no resolver", () => {
  assert.equal(nameserverKey(parse("1.1.1.1")), nameserverKey(parse("udp://1.1.1.1:53")));
  assert.notEqual(nameserverKey(parse("1.1.1.1")), nameserverKey(parse("1.1.1.1#a")));
  const usable = ["1.1.1.1", "https://1.1.1.1/q", "system", "dns.org"].map((text) =>
    needsNoResolver(parse(text)),
  );
  assert.deepEqual(usable, [true, true, true, false]);
});

test("servers that cannot be asked here are left out; questions to a list of nothing else fail", () => {
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text);
  const list = ["quic://1.1.1.1", "https://1.1.1.1/q#h3=true", "ts://node", "1.1.1.1"].map(parse);
  assert.deepEqual(
    withoutUnsupported(list, "dns.fallback", warn, () => true).map(({ scheme }) => scheme),
    ["quic", "https", "udp"],
  );
  assert.equal(warnings.length, 1);
  assert.deepEqual(
    withoutUnsupported(list, "dns.fallback", warn, () => false).map(({ scheme }) => scheme),
    ["udp"],
  );
  assert.deepEqual(
    withoutUnsupported(list.slice(0, 1), "dns.fallback", warn, () => false).map(({ text }) => text),
    ["rcode://server_failure"],
  );
  assert.match(warnings.at(-1) ?? "", /dns\.fallback: no server of the list can be used/);
  assert.deepEqual(
    withoutUnsupported([], "dns.fallback", warn, () => false),
    [],
  );
});

test("policy keys", () => {
  assert.deepEqual(parseConditions("+.A.org, *.b.org"), [
    { kind: "domain", pattern: "+.a.org" },
    { kind: "domain", pattern: "*.b.org" },
  ]);
  assert.deepEqual(parseConditions("GEOSITE:cn,geolocation-!cn@x"), [
    { kind: "geosite", category: "cn" },
    { kind: "geosite", category: "geolocation-!cn@x" },
  ]);
  assert.deepEqual(parseConditions("Rule-Set:mine"), [{ kind: "rule-set", name: "mine" }]);
  for (const bad of ["", ",", "a..b", "a.org.", "geosite:"])
    assert.throws(() => parseConditions(bad), ConfigError);
});

test("lines of the fake-IP filter", () => {
  assert.deepEqual(parseFakeIpRule("domain-suffix,a.org,real-ip"), {
    type: "DOMAIN-SUFFIX",
    payload: "a.org",
    fake: false,
  });
  assert.deepEqual(parseFakeIpRule("MATCH,fake-ip"), { type: "MATCH", payload: "", fake: true });
  assert.equal(parseFakeIpRule("DOMAIN-REGEX,^a{1,2}$,real-ip").payload, "^a{1,2}$");
  for (const bad of [
    "IP-CIDR,1.0.0.0/8,real-ip",
    "DOMAIN,a.org,DIRECT",
    "DOMAIN,real-ip",
    "DOMAIN,,real-ip",
    "",
  ])
    assert.throws(() => parseFakeIpRule(bad), ConfigError, bad);
});
