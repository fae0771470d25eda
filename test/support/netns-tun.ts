/**
 * Runs in the router's namespace: a TUN whose far side is this program. It checks that every flow is told the addresses
 * that the client says, and that no NAT port is given away while a connection uses it. For each line of input it prints
 * its figures; `later` lets a minute pass for the NAT.
 */
import { createInterface } from "node:readline";
import type { CaptureOptions } from "#core/capture.ts";
import { SILENT } from "#core/log.ts";
import type { Ip, StreamSession } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { DEFAULT_KEEP_ALIVE } from "#net/keep-alive.ts";
import type { TunSettings } from "#tun/settings.ts";
import { Tun } from "#tun/tun.ts";

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

const capture = { autoRoute: false, autoRedirect: false } as CaptureOptions;
const settings: TunSettings = {
  name: "test",
  ruleList: null,
  target: null,
  stack: "system",
  device,
  mtu: 1500,
  gso: gso === "true",
  fileDescriptor: 0,
  addresses: [
    { ip: "198.18.0.1" as Ip, bits: 30 },
    { ip: "fdfe:dcba:9876::1" as Ip, bits: 126 },
  ],
  dnsHijack: [],
  udpTimeoutMs: 300_000,
  icmpTimeoutMs: 10_000,
  forwardsIcmp: false,
  loopbackAddresses: [],
  capture,
  bypass: null,
  detectsInterface: false,
  routeSets: null,
  routeExcludeSets: null,
  ipv6: true,
};

const tun = await Tun.open(settings, {
  accept: (session) => {
    if (session.network === "tcp") serve(session);
    else session.flow.receive((item) => session.flow.send(item)); // an echo
  },
  dns: () => null,
  keepAlive: () => DEFAULT_KEEP_ALIVE,
  log: SILENT,
  decideEcho: async () => "answer",
  socketOptions: () => null,
  openEgress: () => ({ async [Symbol.asyncDispose]() {} }),
  openCapture: () => Promise.reject(new Error("there is none")),
  hold: async () => null,
  openBypass: async () => null,
  prefixesOf: () => [],
  nowMs: () => performance.now() + skippedMs,
});
tun.activate();
console.log("ready");
for await (const line of createInterface(process.stdin)) {
  if (line === "later") skippedMs += 60_000;
  console.log(JSON.stringify({ accepted, reused, wrong, open: inUse.size, natSize: tun.natSize }));
}
await tun[Symbol.asyncDispose]();
