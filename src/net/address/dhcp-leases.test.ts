import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLeases } from "./dhcp-leases.ts";

const DNSMASQ = `1785000000 02:00:5e:00:53:01 192.168.1.20 phone 01:02:00:5e:00:53:01
1785000000 02:00:5E:00:53:02 192.168.1.21 * *
0 06-02:00:5e:00:53:03 192.168.1.22 other *
duid 00:01:00:01
1785000000 02:00:5e:00:53:04 192.168.1.23 <script> *
`;
const ISC = `# The format of this file is documented in the dhcpd.leases(5) manual page.
lease 192.168.1.20 {
  starts 4 2026/11/26 10:00:00;
  binding state active;
  hardware ethernet 02:00:5e:00:53:01;
  client-hostname "phone";
}
lease 192.168.1.21 {
  hardware ethernet 02:00:5e:00:53:02;
}
`;
const NETWORKD = JSON.stringify({
  BootID: "0".repeat(32),
  Address: [192, 168, 1, 1],
  Leases: [
    {
      ClientId: [1, 2, 0, 94, 0, 83, 1],
      Address: [192, 168, 1, 20],
      Hostname: "phone",
      HardwareAddressType: 1,
      HardwareAddressLength: 6,
      HardwareAddress: [2, 0, 94, 0, 83, 1],
    },
    { Address: [192, 168, 1, 21], HardwareAddress: [2, 0, 94, 0, 83, 2] },
    { Hostname: "odd", HardwareAddress: [2, 0, 94, 0, 83, 512] },
  ],
});
const PHONE = [["02:00:5e:00:53:01", "phone"]];

test("the files of three servers name the same phone, and no other device", () => {
  for (const text of [DNSMASQ, ISC, NETWORKD]) assert.deepEqual([...parseLeases(text)], PHONE);
});

test("every truncation names the phone, perhaps shorter, or none", () => {
  for (const text of [DNSMASQ, ISC, NETWORKD])
    for (let length = 0; length <= text.length; length++)
      for (const [mac, name] of parseLeases(text.slice(0, length))) {
        assert.equal(mac, "02:00:5e:00:53:01");
        assert.ok("phone".startsWith(name), name);
      }
});

test("a later lease wins; names that are none and endless ones are passed over", () => {
  const line = (name: string) => `1 02:00:5e:00:53:01 192.168.1.20 ${name} *\n`;
  assert.equal(parseLeases(line("old") + line("new")).get("02:00:5e:00:53:01"), "new");
  for (const name of ["-a", "a..b", "a".repeat(64), `${"a.".repeat(127)}ab`, "a\u0000b", "ü"])
    assert.equal(parseLeases(line(name)).size, 0, name);
  for (const text of ["", "{", "[]", "{}", '{"Leases":7}', "null", "lease x {"])
    assert.equal(parseLeases(text).size, 0, text);
});

test("the number of names is bounded, and a file of many lines is read in linear time", () => {
  const mac = (at: number) =>
    `02:00:00:${at
      .toString(16)
      .padStart(6, "0")
      .replace(/(..)(..)(..)/, "$1:$2:$3")}`;
  const lines = Array.from({ length: 70_000 }, (_, at) => `1 ${mac(at)} 10.0.0.1 host${at} *`);
  const names = parseLeases(lines.join("\n"));
  assert.equal(names.size, 65_536);
  assert.equal(names.get(mac(65_535)), "host65535");
});
