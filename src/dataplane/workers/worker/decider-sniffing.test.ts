/** While sniffing is on, a worker decides what no look at first bytes could change, and leaves the rest. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { SharedAnswers } from "#dns/shared-answers.ts";
import { SNIFF_PROTOCOLS } from "#router/sniff/index.ts";
import { SniffStage } from "#router/sniff/stage.ts";
import { metadataOf } from "../../../../test/support/metadata.ts";
import { openOneDecider } from "../../../../test/support/one-decider.ts";

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
  const answers = new SharedAnswers(() => Date.now());
  for (const name of NAMES) answers.pin(name, [ADDRESS]);
  return openOneDecider({ names: { known: answers.memory, forRules: null }, sniffed: stage.streams });
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
