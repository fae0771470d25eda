/** Client – router – origin: workers decide what the kernel brings them, and what is their own and has come back is known. */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { capture, CAPTURES, type Capture } from "../support/netns-captured.ts";
import { FAMILIES, openRow, talkTo, type Row } from "../support/netns-row.ts";
import { skipNetns } from "../support/netns.ts";

const skip = skipNetns("captured clients of workers", "nft");
const program = join(dirname(fileURLToPath(import.meta.url)), "..", "support", "netns-deciding.ts");
const COUNT = 100;
/** What the rules of the manual let pass. */
const MARK = 6666;

/** The router's address towards the origin is still its own, and its interface carries nothing. */
async function loseCarrier({ origin, router }: Row): Promise<void> {
  await origin.ip("link set down0 down");
  while (!(await router.run("ip", "link", "show", "up0")).includes("NO-CARRIER"));
  await new Promise((resolve) => setTimeout(resolve, 1_500)); // what was looked up before is old by then
}

interface Told {
  /** Where clients are whom the main thread was asked for, and how many of these came from a dial of ours. */
  readonly asked: readonly string[];
  readonly own: number;
  readonly served: readonly string[];
  readonly joined: readonly string[];
  /** Joined ones that are over. */
  readonly ended: number;
  readonly deaths: number;
}

/** What the main thread of workers in the router's namespace has been told, until it is as wanted. */
async function openWorkers(row: Row, by: Capture, mark: number, undo: AsyncDisposableStack) {
  await capture(row, by);
  const node = [process.execPath, "--disable-warning=ExperimentalWarning"];
  const told = talkTo(row.router, [...node, program, by, String(CAPTURES[by]), String(mark)], undo);
  assert.equal(await told.nextLine(), "ready");
  const tell = async (line: string): Promise<Told> => {
    told.say(line);
    return JSON.parse(await told.nextLine()) as Told;
  };
  const until = async (what: string, isIt: (now: Told) => boolean): Promise<Told> => {
    for (let tries = 0; tries < 600; tries++) {
      const now = await tell("look");
      if (isIt(now)) return now;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return assert.fail(`in vain: ${what}: ${JSON.stringify(await tell("look"))}`);
  };
  return { tell, until };
}

const CLIENTS: ReadonlySet<string> = new Set(["203.0.113.2", "fd00:1::2"]);

/** As the rows of decided connections are shown by netns-deciding.ts. */
const rowOf = (by: Capture, client: string, origin: string, router: string): string => {
  const [type, local] = by === "tproxy" ? ["TProxy", "::"] : ["Redir", router];
  return [type, client, "", origin, 7, origin, origin, 7, local, CAPTURES[by]].join();
};

for (const by of ["redir", "tproxy"] as const) {
  test(`${by}: clients of others are served without the main thread`, { skip, timeout: 60_000 }, async () => {
    await using row = await openRow("alone");
    await using undo = new AsyncDisposableStack();
    const { until } = await openWorkers(row, by, MARK, undo);
    for (const [at, { origin, router }] of FAMILIES.entries()) {
      assert.equal(await row.near("many", origin, 7, COUNT), `${COUNT} echoed`);
      const { asked, served } = await until("all", (now) => now.served.length === (at + 1) * COUNT);
      const client = router.replace(/1$/, "2");
      assert.deepEqual(new Set(served.slice(-COUNT)), new Set([rowOf(by, client, origin, router)]));
      assert.deepEqual(asked, []);
    }
    // From an address of the router's own it may have come back: the main thread is asked.
    assert.equal(await row.nearIn(row.router, "ends", FAMILIES[0].origin, 7, COUNT), `${COUNT} ended`);
    assert.equal((await until("questions", ({ asked }) => asked.length === COUNT)).own, 0);
  });

  test(
    `${by}: what a worker dials and comes back is known as its own, whichever worker accepts it`,
    { skip, timeout: 60_000 },
    async () => {
      await using row = await openRow("back");
      await using undo = new AsyncDisposableStack();
      const { until } = await openWorkers(row, by, 0, undo);
      let sum = 0;
      const [v4] = FAMILIES;
      for (const [round, { origin }] of [...FAMILIES, ...FAMILIES, v4].entries()) {
        if (round === 4) await loseCarrier(row);
        assert.equal(await row.near("ends", origin, 7, COUNT), `${COUNT} ended`);
        sum += COUNT;
        // A redirected connection whose port was another's a moment ago gets a new one, and is not known.
        // Where the reset comes before the worker has seen that it is connected, it asks for its client, too.
        const back = ({ asked }: Told): number => asked.filter((source) => !CLIENTS.has(source)).length;
        const now = await until("questions", (told) => back(told) >= sum);
        assert.equal(back(now), sum, "each goes round once");
        if (by === "tproxy") assert.equal(now.own, sum);
        else assert.ok(now.own > 0.9 * sum, `${now.own} of ${sum}`);
      }
    },
  );

  test(
    `${by}: open connections become known, and end with their worker`,
    { skip, timeout: 60_000 },
    async () => {
      await using row = await openRow("join");
      await using undo = new AsyncDisposableStack();
      const { tell, until } = await openWorkers(row, by, MARK, undo);
      const { origin, router } = FAMILIES[0];
      const held = row.talk("hold", origin, 7);
      held.say("one");
      assert.equal(await held.nextLine(), "tcp one");
      const { joined } = await tell("join");
      assert.deepEqual(joined, [rowOf(by, "203.0.113.2", origin, router)]);
      await tell("kill");
      const { deaths, ended } = await until("an end", (now) => now.ended === 1 && now.deaths === 2);
      assert.deepEqual([deaths, ended], [2, 1]);
      assert.match(await held.nextLine(), /^tcp E/);
    },
  );
}
