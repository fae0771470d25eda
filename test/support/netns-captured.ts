/** What holds of TCP that a router's nftables brings to weir, by each way and each acceptor. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import type { TestContext } from "node:test";
import { manual, ROUTER, type FAMILIES, type Row } from "./netns-row.ts";
import type { Core } from "./start-core.ts";
import { until } from "./until.ts";

/** By workers where the system allows it, and by the event loop. */
export const RELAYS = ["auto", "portable"] as const;

/** How often both are asked at once: the kernel rarely gives two programs the same ports. */
const ROUNDS = 5;

export const CAPTURES = { redir: 7892, tproxy: 7893 } as const;
export type Capture = keyof typeof CAPTURES;

/** The rules of the manual, on the router. */
export async function capture({ router }: Row, by: Capture): Promise<void> {
  if (by === "tproxy") {
    const routes = manual("tproxy", "sh").trimEnd().split("\n");
    await router.ip(...routes.map((line) => line.replace(/^ip /, "")));
  }
  await router.nft(manual(by, "nft"));
}

/** The core captures by `by` and logs at level debug. */
export interface Captured {
  readonly row: Row;
  readonly core: Core;
  readonly by: Capture;
}

/** Settles once what was logged before has been read: lines come a moment later, and in order. */
export async function logShown({ row, core, by }: Captured): Promise<void> {
  const marks = (): number => core.output().match(/a connection .* is reset/g)?.length ?? 0;
  const before = marks();
  await row.near("end", ROUTER[0], CAPTURES[by]);
  await until("a line of the log", () => marks() > before);
}

/** The core lets everything out by DIRECT. */
export async function checkCapturedTcp(
  t: TestContext,
  captured: Captured,
  { name, router, origin }: (typeof FAMILIES)[number],
): Promise<void> {
  const { row, core, by } = captured;
  const descriptors = (): number => readdirSync(`/proc/${core.pid}/fd`).length;

  await t.test(`${name}: 200 connections at once`, async () => {
    assert.equal(await row.near("many", origin, 7, 200), "200 echoed");
  });
  await t.test(
    `${name}: the LAN and the router's own programs at once: none is taken for a loop`,
    async () => {
      const before = core.output().match(/a loop/g)?.length ?? 0;
      for (let round = 0; round < ROUNDS; round++) {
        const both = [row.near("many", origin, 7, 200), row.nearIn(row.router, "many", origin, 7, 200)];
        assert.deepEqual(await Promise.all(both), ["200 echoed", "200 echoed"]);
      }
      await logShown(captured);
      assert.equal(core.output().match(/a loop/g)?.length ?? 0, before);
    },
  );
  await t.test(`${name}: clients that reset leave no descriptor behind`, async () => {
    assert.equal(await row.near("many", origin, 7, 20), "20 echoed");
    const before = descriptors(); // perhaps with pipes that are kept for a moment
    for (let round = 0; round < 3; round++)
      assert.equal(await row.near("give-up", origin, 7, 200), "200 given up");
    assert.equal(await row.near("many", origin, 7, 200), "200 echoed");
    await until(
      () => `${before} descriptors, not ${descriptors()}`,
      () => descriptors() <= before,
    );
  });
  await t.test(`${name}: without a listener there the connection is closed`, async () => {
    assert.equal(await row.near("end", origin, 81), "end");
  });
  await t.test(`${name}: the listener's own address is reset`, async () => {
    assert.equal(await row.near("end", router, CAPTURES[by]), "ECONNRESET");
  });
}
