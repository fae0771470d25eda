/**
 * Runs in the router's namespace: a TUN whose far side is this program. It checks that every flow is told the addresses
 * that the client says, and that no NAT port is given away while a connection uses it. For each line of input it prints
 * its figures; `later` lets a minute pass for the NAT.
 */
import { createInterface } from "node:readline";
import type { StreamSession } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { Tun } from "#tun/tun.ts";
import { BARE_ENV, bareSettings } from "./bare-tun.ts";

const [device = "tun0", gso = "false"] = process.argv.slice(2);
let accepted = 0;
let reused = 0;
let wrong = 0;
let skippedMs = 0;
const inUse = new Set<string>();

function serve({ metadata, stream, ended }: StreamSession): void {
  accepted++;
  const socket = stream as StreamSocket;
  const port = `${socket.remoteFamily} ${socket.remotePort}`;
  if (inUse.has(port)) reused++;
  inUse.add(port);
  const { source, destination } = metadata;
  stream.on("data", (chunk: Buffer) => {
    const right = String(chunk).startsWith(`${source.port} ${destination.port}`);
    if (!right) wrong++;
    stream.write(right ? "ok\n" : "wrong\n");
  });
  stream.on("end", () => stream.end());
  stream.on("close", () => {
    inUse.delete(port);
    ended?.();
  });
}

const tun = await Tun.open(bareSettings(device, { gso: gso === "true" }), {
  ...BARE_ENV,
  accept: (session) => {
    if (session.network === "tcp") serve(session);
    else session.flow.receive((item) => session.flow.send(item)); // an echo
  },
  nowMs: () => performance.now() + skippedMs,
});
tun.activate();
console.log("ready");
for await (const line of createInterface(process.stdin)) {
  if (line === "later") skippedMs += 60_000;
  console.log(JSON.stringify({ accepted, reused, wrong, open: inUse.size, natSize: tun.natSize }));
}
await tun[Symbol.asyncDispose]();
