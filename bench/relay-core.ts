/** A core reduced to `serve` behind a listener that leads to one target: what the relay costs by itself. */
import { randomUUID } from "node:crypto";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { UNWATCHED } from "#core/flow-watch.ts";
import { SILENT } from "#core/log.ts";
import type { Decision, Router } from "#core/router.ts";
import type { Metadata } from "#core/session.ts";
import { openDirectDialer } from "#net/direct-dialer.ts";
import { LOOPBACK_V4, socketIp } from "#net/ip.ts";
import { directOutbound } from "#protocols/direct/index.ts";
import { countingLedger } from "../test/support/counting-ledger.ts";
import { LiveTable } from "#relay/live-table.ts";
import { serve } from "#relay/serve.ts";
import { Sweep } from "#relay/sweep.ts";
import { HALF_CLOSED_IDLE_MS, TCP_IDLE_MS } from "#relay/times.ts";

const target = { host: null, ip: LOOPBACK_V4, port: Number(process.argv[2]) };
const resolver = { lookup: () => Promise.reject(new Error("there are only addresses here")) };
const outbound = directOutbound("DIRECT", openDirectDialer({ resolver }));
const decision: Decision = {
  outbound,
  chain: ["DIRECT"],
  groups: [],
  dnsMode: "normal",
  destination: target,
  rule: null,
  unruled: true,
  facts: {},
};
const router: Router = { route: () => Promise.resolve(decision) };
const env = {
  router,
  flows: UNWATCHED,
  sniffer: null,
  ledger: countingLedger(),
  live: new LiveTable(),
  log: SILENT,
  sweep: new Sweep(),
  carrier: null,
  idleMs: TCP_IDLE_MS,
  halfClosedIdleMs: HALF_CLOSED_IDLE_MS,
};

const server = createServer({ allowHalfOpen: true, noDelay: true }, (stream) => {
  const { port } = server.address() as AddressInfo;
  const metadata: Metadata = {
    id: randomUUID(),
    network: "tcp",
    source: { ip: socketIp(stream.remoteAddress), port: stream.remotePort ?? 0 },
    destination: target,
    inbound: {
      name: "bench",
      type: "Tunnel",
      user: null,
      local: { ip: LOOPBACK_V4, port },
      ruleList: null,
      target: null,
    },
    dscp: null,
    acceptedAtMs: Date.now(),
  };
  void serve({ network: "tcp", metadata, stream, reply() {} }, env);
});
server.listen({ port: 0, host: LOOPBACK_V4, backlog: 4096 }, () => {
  process.send?.((server.address() as AddressInfo).port);
});
process.on("disconnect", () => process.exit(0));
