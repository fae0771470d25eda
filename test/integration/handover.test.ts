/** What a program that is no weir may send on the link to a new process. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { MOST_PACKET_BYTES, openHandover } from "#platform/handover.ts";
import { Peer, PeerError } from "#upgrade/peer.ts";

const handover = openHandover();
const skip = handover === null ? "SKIP handover: needs Linux with node:ffi" : false;

test("a packet that is longer than any of ours ends the link", { skip }, async () => {
  assert.ok(handover !== null);
  const { link, theirs } = handover.pair();
  using peer = new Peer(link, () => true);
  const script = `require("node:fs").writeSync(3, Buffer.alloc(${MOST_PACKET_BYTES + 1})); setInterval(() => {}, 1000)`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "inherit", "inherit", theirs] });
  handover.close(theirs);
  try {
    await assert.rejects(
      peer.hear("hello", 300_000),
      (error) => error instanceof PeerError && /it has ended/.test(error.message),
    );
  } finally {
    child.kill("SIGKILL");
  }
});
