import assert from "node:assert/strict";
import { isIP } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { cidrHolds, cidrText, isLanIp, parseCidr } from "./cidr.ts";
import { bytesOfIp, ipFromBytes, parseIp, toDestination } from "./ip.ts";

test("canonical text of addresses", () => {
  const cases: readonly (readonly [string, string | null])[] = [
    ["1.2.3.4", "1.2.3.4"],
    ["::ffff:1.2.3.4", "1.2.3.4"],
    ["::FFFF:102:304", "1.2.3.4"],
    ["[2001:DB8:0:0:1:0:0:1]", "2001:db8::1:0:0:1"],
    ["fe80::1%eth0", "fe80::1"],
    ["::", "::"],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["01.2.3.4", null],
    ["1.2.3", null],
    ["1.2.3.256", null],
    ["1.2.3.4.5", null],
    ["1::2::3", null],
    ["1:2:3:4:5:6:7:8:9", null],
    ["example.org", null],
    ["::1.2.3.4:5", null],
  ];
  for (const [text, wanted] of cases) assert.equal(parseIp(text), wanted, text);
});

test("agrees with the runtime on every text, and bytes round-trip", () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()), (text) => {
      const ours = parseIp(text);
      const bare = text.startsWith("[") ? "" : (text.split("%")[0] as string);
      if (bare !== "" && !text.includes("%")) assert.equal(ours !== null, isIP(text) !== 0, text);
      if (ours !== null) assert.equal(ipFromBytes(bytesOfIp(ours)), ours);
    }),
  );
});

test("networks", () => {
  assert.equal(cidrText(parseCidr("10.1.2.3/8")!), "10.0.0.0/8");
  assert.equal(cidrText(parseCidr("::ffff:10.1.2.3/104")!), "10.0.0.0/8");
  assert.equal(parseCidr("10.0.0.0/33"), null);
  assert.ok(cidrHolds(parseCidr("10.0.0.0/9")!, bytesOfIp(parseIp("10.127.0.1")!)));
  assert.ok(!cidrHolds(parseCidr("10.0.0.0/9")!, bytesOfIp(parseIp("10.128.0.1")!)));
  assert.ok(isLanIp(parseIp("192.168.3.4")!) && isLanIp(parseIp("::1")!) && !isLanIp(parseIp("8.8.8.8")!));
});

test("destinations keep names and literals apart", () => {
  assert.deepEqual(toDestination("Example.ORG.", 80), { host: "example.org", ip: null, port: 80 });
  assert.deepEqual(toDestination("[::1]", 80), { host: null, ip: "::1", port: 80 });
  assert.deepEqual(toDestination("Example.ORG...", 80), { host: "example.org", ip: null, port: 80 });
  assert.deepEqual(toDestination("127.0.0.1..", 80), { host: null, ip: "127.0.0.1", port: 80 });
  assert.deepEqual(toDestination("..", 80), { host: "", ip: null, port: 80 });
});
