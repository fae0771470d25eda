/** Who has no key learns nothing of REALITY: bytes, lengths of records and ends are the site's. Times are `npm run prove:dest`'s. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openPlainRelay, Tap, visitAs } from "../support/probing/dest.ts";
import { realityProbers } from "../support/probing/reality-probers.ts";
import { openReality, openSite, openThreadedReality } from "../support/reality.ts";
import { until } from "../support/until.ts";

/** Of the site: one prober waits for it. */
const HANDSHAKE_TIMEOUT_MS = 3000;
/** As many as there are continuations of a repeated hello, and some more. */
const ROUNDS = 24;

const WAYS = [
  ["the event loop", openReality],
  ["workers", openThreadedReality],
] as const;

for (const ecdhCurve of ["X25519", "X25519MLKEM768"])
  for (const [by, open] of WAYS)
    test(`probers at a site of ${ecdhCurve} see the site alone, by ${by}`, { timeout: 120_000 }, async () => {
      await using site = await openSite({ handshakeTimeout: HANDSHAKE_TIMEOUT_MS, ecdhCurve });
      await using tap = await Tap.open(site.port);
      await using relay = await openPlainRelay(tap.port);
      await using server = await open({ dest: tap.port, more: { "max-time-difference": 3600_000 } });
      await until("the site was asked in advance", () => tap.count === 1);
      for (const kind of await realityProbers()) {
        // Cuts spread over the whole hello, and every continuation.
        const turns = Array.from(
          { length: ROUNDS },
          (_, at) => at * (kind.name === "hello cut short" ? 73 : 1),
        );
        const { differences } = await visitAs({ server: server.port, relay: relay.port, tap }, kind, turns);
        assert.deepEqual(differences, [], kind.name);
      }
      const repeated = server.refused.filter((why) => why.includes("repeated another one's hello"));
      assert.ok(repeated.length >= ROUNDS / 2, "repeated hellos are answered by the server itself at first");
    });
