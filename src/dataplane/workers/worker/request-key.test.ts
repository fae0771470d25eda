import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { REQUEST_BYTES } from "#dataplane/workers/shared/accept-memory.ts";
import { RequestKey } from "./request-key.ts";

const key = new RequestKey();
const sockaddr = (ip: string, port: number, before = 0): Uint8Array => {
  const bytes = new Uint8Array(before + SOCKADDR_BYTES).fill(0xee);
  encodeSockaddr(bytes.subarray(before), { address: bytesOfIp(ip as Ip), port });
  return bytes;
};
const MAPPED = sockaddr("::1", 5);
MAPPED.set([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1], 8);

interface Client {
  readonly tag?: number;
  readonly source?: Uint8Array;
  readonly local?: Uint8Array | null;
  readonly request?: string;
}

function write({
  tag = 7,
  source = sockaddr("192.0.2.1", 1000),
  local = null,
  request = "ask",
}: Client): void {
  key.begin(tag);
  key.addHost(source, source.length - SOCKADDR_BYTES);
  if (local === null) key.addNoHost();
  else key.addHost(local, 0);
  const bytes = Buffer.from(`>>${request}<<`);
  key.add(bytes, 2, bytes.length - 2);
}

const same: readonly Client[] = [
  {},
  { source: sockaddr("192.0.2.1", 2000) },
  { source: sockaddr("192.0.2.1", 2000, 3 * SOCKADDR_BYTES) },
  { source: MAPPED },
];
const others: readonly Client[] = [
  { tag: 8 },
  { tag: 7 + 2 ** 30 },
  { source: sockaddr("192.0.2.2", 1000) },
  { source: sockaddr("2001:db8::1", 1000) },
  { local: sockaddr("192.0.2.1", 1000) },
  { local: sockaddr("2001:db8::1", 1000) },
  { request: "asks" },
  { request: "as" },
  { request: "" },
  { request: "a".repeat(REQUEST_BYTES) },
];

test("equal for the same request from the same address, whatever its source port and form", () => {
  write({});
  const kept = key.kept();
  for (const client of same) {
    write(client);
    assert.ok(key.equals(kept));
    assert.equal(key.hash, kept.hash);
  }
});

test("another listener, address or request is another key", () => {
  const all = [{}, ...others].map((client) => {
    write(client);
    return key.kept();
  });
  for (const [at, client] of [{}, ...others].entries()) {
    write(client);
    assert.deepEqual(
      all.map((kept) => key.equals(kept)),
      all.map((_, nth) => nth === at),
    );
    for (const kept of all)
      // whatever their hashes are
      if (kept !== all[at]) assert.ok(!key.equals({ ...kept, hash: key.hash }));
  }
});
