/** Datagrams of many peers in one call: what one of them causes is no other's. */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { datagramDescriptorOf } from "#net/udp/datagram-descriptor.ts";
import { openBatchedDatagrams } from "#platform/datagrams.ts";
import { decodeSockaddr } from "#platform/linux/sockaddr.ts";
import { until } from "../support/until.ts";

const batches = process.platform === "linux" ? openBatchedDatagrams() : null;
const skip = batches === null;

async function bound(type: "udp4" | "udp6"): Promise<Socket> {
  const socket = createSocket(type)
    .unref()
    .bind(0, type === "udp4" ? "127.0.0.1" : "::1");
  await once(socket, "listening");
  return socket;
}

test(
  "a receiver that throws loses that datagram alone, and the next peers' addresses are whole",
  { skip },
  async () => {
    assert.ok(batches !== null);
    const refused: unknown[] = [];
    // Addresses of IPv6 behind those of IPv4, which are shorter, in the same memory.
    for (const type of ["udp4", "udp6"] as const) {
      const [target, peer] = [await bound(type), await bound(type)];
      const { port, address } = target.address();
      const fd = batches.adopt(datagramDescriptorOf(target));
      target.close(); // the runtime would read it
      for (const payload of ["bad", "one", "two"]) peer.send(payload, port, address);
      const came: string[] = [];
      const from: unknown[] = [];
      await until("all have come", () => {
        try {
          batches.receive.read(fd, (payload, name) => {
            came.push(String(payload));
            from.push(decodeSockaddr(name));
            if (came.length === 1) throw new Error("a fault of ours");
          });
        } catch (error) {
          refused.push(error);
        }
        return came.length === 3;
      });
      const bytes = type === "udp4" ? Uint8Array.of(127, 0, 0, 1) : new Uint8Array(16).fill(1, 15);
      assert.deepEqual(came, ["bad", "one", "two"]);
      assert.deepEqual(from, Array(3).fill({ address: bytes, port: peer.address().port }));
      batches.close(fd);
      peer.close();
    }
    assert.deepEqual(refused.map(String), Array(2).fill("Error: a fault of ours"));
  },
);
