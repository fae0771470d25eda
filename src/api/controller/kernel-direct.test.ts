import assert from "node:assert/strict";
import { test } from "node:test";
import { apiApp } from "../../../test/support/api-app.ts";

test("kernel-direct.md §6.4: the example of mark mode, with its members at the top level, too", async () => {
  const { app } = await apiApp();
  const answer = await app.inject({ url: "/api/svc/kernel-direct/status", headers: { host: "127.0.0.1" } });
  assert.equal(answer.statusCode, 200);
  const traffic = {
    upload_bytes: 1024,
    download_bytes: 4096,
    upload_rate_bytes_per_second: 0,
    download_rate_bytes_per_second: 512,
    active_connections: 3,
  };
  assert.deepEqual(answer.json(), {
    backend: "ebpf-tc-lpm-lru",
    fast_paths: [
      {
        backend: "ebpf-tc-lpm-lru",
        "requested-interfaces": ["br-lan"],
        interfaces: ["eth0", "wlan0"],
        mark: 1073741824,
        "proxy-mark": 536870912,
        "input-mark": 8227,
        ipv4: 36,
        ipv6: 5,
        "direct-prefixes": 31,
        "proxy-prefixes": 6,
        "bypass-prefixes": 4,
        "flow-max-entries": 65536,
        packets: 9120,
        bytes: 7340032,
        "direct-packets": 9120,
        "direct-bytes": 7340032,
        "proxy-packets": 410,
        "proxy-bytes": 393216,
        "flow-hits": 9001,
        "updated-at": "2026-08-06T12:34:56.789Z",
      },
    ],
    learned_sets: [
      {
        max_entries: 4096,
        max_records: 16384,
        learned_addresses: 37,
        direct_addresses: 31,
        proxy_addresses: 6,
        learned_domains: 52,
        evictions: 0,
      },
    ],
    process: { pid: 2143, started_at: 1785312000 },
    svc_traffic: traffic,
    proxy_traffic: traffic,
    "requested-interfaces": ["br-lan"],
    interfaces: ["eth0", "wlan0"],
    packets: 9120,
    bytes: 7340032,
    "proxy-packets": 410,
    "proxy-bytes": 393216,
  });
});
