/** What the library keeps of a configuration that is gone: nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openTrust } from "#net/dial/trust.ts";
import { ClientContexts, type Identity } from "#transport/tls/native-contexts.ts";
import { makeCertificate } from "../support/certificate.ts";
import { textFiles } from "../support/text-files.ts";
import { nativeTls as native } from "../support/native-tls.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** A store of the runtime's authorities weighs more than half of one. */
const MIB = 1024 * 1024;
const RELOADS = 60;

test(
  "stores and contexts go with their trust; nodes that are alike share them",
  { skip: native === null },
  async () => {
    const contexts = new ClientContexts((native as NonNullable<typeof native>).clients);
    const authority = makeCertificate({ names: ["Test Authority"] });
    const reload = async (): Promise<void> => {
      const trust = await openTrust([authority.cert], textFiles, "tls.custom-certifactes");
      const identity: Identity = { trust, minVersion: "TLSv1.2", keyPair: null };
      const made = contexts.of(identity, "authorities");
      assert.equal(contexts.of({ ...identity }, "authorities"), made);
      assert.notEqual(contexts.of(identity, "pin"), made);
      assert.notEqual(contexts.of({ ...identity, minVersion: "TLSv1.3" }, "authorities"), made);
    };
    const settled = async (times: number): Promise<number> => {
      for (let at = 0; at < times; at++) {
        await reload();
        collect();
        await turn(); // what was found gone is given back in turns of their own
      }
      await turn();
      return process.memoryUsage.rss();
    };
    const before = await settled(20);
    const grown = (await settled(RELOADS)) - before;
    assert.ok(grown < (RELOADS / 4) * MIB, `${Math.round(grown / MIB)} MiB more after ${RELOADS} reloads`);
  },
);
