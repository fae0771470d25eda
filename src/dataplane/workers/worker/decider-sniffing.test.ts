/** While sniffing is on, a worker decides what no look at first bytes could change, and leaves the rest. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import type { Destination, Ip } from "#core/session.ts";
import { AcceptMemory, newAcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { FIRST_ACCEPTED_SLOT as SLOT } from "#dataplane/workers/shared/relay-memory.ts";
import { SharedAnswers } from "#dns/shared-answers.ts";
import { encodeSockaddr, SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { SNIFF_PROTOCOLS } from "#router/sniff/index.ts";
import { SniffStage } from "#router/sniff/stage.ts";
import { decisionData, decisionPorts } from "../../../../test/support/decision-data.ts";
import { metadataOf } from "../../../../test/support/metadata.ts";
import { Decider } from "./decider.ts";

const ADDRESS = "198.51.100.1" as Ip;
const NAMES = ["plain.test", "forced.test"];
const PORTS = [22, 80, 443, 444, 450, 451];

function stageOf(parsePureIp: boolean, forced: string | null): SniffStage {
  const ports = { HTTP: [{ from: 80, to: 80 }], TLS: [{ from: 443, to: 450 }], QUIC: [{ from: 22, to: 22 }] };
  return new SniffStage(
    {
      protocols: SNIFF_PROTOCOLS.map((protocol) => ({
        protocol,
        ports: ports[protocol.type as keyof typeof ports],
        overridesDestination: true,
      })),
      forceDnsMapping: true,
      parsePureIp,
      forcesNames: forced !== null,
      isForced: (host) => host === forced,
      isSkipped: () => false,
      skipsSource: () => false,
      skipsDestination: () => false,
    },
    {
      prepare: (destination) => ({ destination, dnsMode: "normal" }),
      log: SILENT,
      nowMs: () => 0,
    },
  );
}

function openDecider(stage: SniffStage) {
  const shared = new AcceptMemory(newAcceptMemory(SLOT + 1));
  const word = new VersionWord();
  const answers = new SharedAnswers(() => Date.now());
  for (const name of NAMES) answers.pin(name, [ADDRESS]);
  using ports = decisionPorts();
  const decider = new Decider(shared, { reportLazily() {} }, word, ports.port2);
  const names = { known: answers.memory, forRules: null };
  ports.port1.postMessage({ ...decisionData(1), names, sniffed: stage.streams });
  decider.takeVersion();
  word.present = 1;
  const local = new Uint8Array(SOCKADDR_BYTES);
  encodeSockaddr(local, { address: Uint8Array.of(127, 0, 0, 1), port: 5000 });
  encodeSockaddr(shared.source(SLOT), { address: Uint8Array.of(127, 0, 0, 1), port: 4000 });
  return (destination: Destination): boolean => {
    const asked = {
      slot: SLOT,
      listener: 0,
      local,
      destination,
      type: "Socks5",
      success: () => local,
    } as const;
    const dial = decider.decide(asked);
    decider.giveUp(SLOT);
    return dial !== null;
  };
}

test("what the sniffer wants is never a worker's to decide, and nearly all else is", () => {
  for (const parsePureIp of [true, false])
    for (const forced of [null, "forced.test"]) {
      const stage = stageOf(parsePureIp, forced);
      const decides = openDecider(stage);
      for (const port of PORTS)
        for (const host of [null, ...NAMES]) {
          const destination = { host, ip: host === null ? ADDRESS : null, port };
          const isWanted = stage.wants(metadataOf(destination));
          // Which names are forced the main thread knows.
          const isOfForced =
            forced !== null && host !== null && stage.wants(metadataOf({ ...destination, host: forced }));
          const what = JSON.stringify({ parsePureIp, forced, destination });
          assert.equal(decides(destination), !isWanted && !isOfForced, what);
        }
    }
});
