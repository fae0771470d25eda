/** Webhooks of a journal against receivers that are down, slow, broken or elsewhere. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { Journal } from "#journal/journal.ts";
import type { WebhookSettings } from "#journal/webhook-settings.ts";
import { freePorts } from "../support/free-ports.ts";
import { openSendingJournal, webhookTo } from "../support/sending-journal.ts";
import { proveHourDown, shownHour } from "../proofs/webhook-hour.ts";
import { until } from "../support/until.ts";
import {
  disorderOf,
  openReceiver,
  slowBy,
  WELL,
  WRONG,
  type Behave,
  type Receiver,
} from "../support/webhook-receiver.ts";

interface World {
  hook(name: string, url: string, more?: Partial<WebhookSettings>): WebhookSettings;
  /** A program that has these; the file is the same each time. */
  open(webhooks: readonly WebhookSettings[], nowMs?: () => number): Promise<Journal>;
}

function world(context: TestContext): World {
  const folder = mkdtempSync(join(tmpdir(), "weir-webhooks-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "users.db.journal");
  return {
    hook: webhookTo,
    async open(webhooks, nowMs = Date.now) {
      const journal = await openSendingJournal(path, webhooks, nowMs, () => performance.now());
      context.after(() => journal.close());
      return journal;
    },
  };
}

const USERS = ["a", "b", "c"].map((id) => ({ id, name: id, listener: "edge" }));

function report({ sinks }: Journal, rounds: number): void {
  for (let at = 0; at < rounds; at++) for (const user of USERS) sinks.changed(user, [`name ${at}`]);
}

/** The first requests go wrong, each in its way. */
const BAD: readonly (readonly [name: string, behave: Behave])[] = [
  ...Object.entries(WRONG).map(
    ([name, wrong]) => [name, (at, response) => at >= 2 || (wrong(response), false)] as [string, Behave],
  ),
  ["is slow", slowBy(40)],
];

test("every event reaches every receiver at least once, of a subject in order, whatever the receiver does first", async (context) => {
  const { hook, open } = world(context);
  const [downPort] = await freePorts(1);
  const receivers = new Map<string, Receiver>();
  for (const [name, behave] of [...BAD, ["is well", WELL] as const])
    receivers.set(name, await openReceiver(behave));
  await using closing = new AsyncDisposableStack();
  for (const receiver of receivers.values()) closing.use(receiver);
  const hooks = [...receivers.values()].map(({ url }, at) => hook(`h${at}`, url));
  const journal = await open([...hooks, hook("down", `http://127.0.0.1:${downPort}/`)]);
  report(journal, 5);
  await until(
    "the failures of the one that is down",
    () => (journal.webhooks.views().at(-1)?.failures ?? 0) >= 2,
  );
  receivers.set("was down", closing.use(await openReceiver(WELL, downPort)));
  await until(
    () => JSON.stringify(journal.webhooks.views()),
    () => journal.webhooks.views().every(({ pending }) => pending === 0),
    { withinMs: 60_000 },
  );
  for (const [name, { received, faults }] of receivers) {
    const changes = received.filter(({ type }) => type === "user.changed");
    assert.equal(new Set(changes.map(({ seq }) => seq)).size, 15, name);
    assert.deepEqual([disorderOf(received), faults], [[], []], name);
  }
  assert.deepEqual(receivers.get("is well")?.received.length, 16); // once each, and program.upgraded
});

test("a redirect is not followed, and private addresses are refused where they are not allowed, by name, too", async (context) => {
  const { hook, open } = world(context);
  await using inside = await openReceiver();
  const to = (host: string) => `http://${host}:${inside.port}/`;
  const inward = [
    "127.0.0.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "inside.example",
    "lan.example",
    "169.254.169.254",
    "0.0.0.0",
  ];
  const journal = await open(inward.map((host, at) => hook(`h${at}`, to(host), { allowPrivate: false })));
  report(journal, 1);
  await until("their refusals", () => journal.webhooks.views().every(({ lastError }) => lastError !== ""));
  for (const { lastError, origin } of journal.webhooks.views())
    assert.match(lastError, /no address of the public internet/, origin);
  assert.equal(inside.requests(), 0);
});

test("events are chosen by type, a test goes to its webhook alone, and what is kept outlives the program", async (context) => {
  const { hook, open } = world(context);
  await using all = await openReceiver();
  await using nodes = await openReceiver();
  const [deadPort] = await freePorts(1);
  const hooks = [
    hook("all", all.url),
    hook("nodes", nodes.url, { events: ["node.*"] }),
    hook("dead", `http://127.0.0.1:${deadPort}/secret-path`),
  ];
  const journal = await open(hooks);
  journal.sinks.node("far", false);
  report(journal, 1);
  await journal.webhooks.test("nodes");
  await assert.rejects(journal.webhooks.test("nothing"), { status: 404 });
  await until("theirs", () => nodes.received.length === 2 && all.received.length === 5);
  assert.deepEqual(nodes.received.map(({ type }) => type).sort(), ["node.dead", "webhook.test"]);
  assert.ok(!JSON.stringify(journal.webhooks.views()).includes("secret-path"));
  await until("its failure", () => journal.webhooks.views().at(-1)?.lastError !== "");
  journal.close();

  await using back = await openReceiver(WELL, deadPort);
  await open(hooks);
  await until("the events of before", () => back.received.length === 5, { withinMs: 30_000 });
  assert.deepEqual([back.faults, disorderOf(back.received)], [[], []]);
});

for (const [how, days] of [
  ["ahead", 2],
  ["back", -60],
] as const)
  test(`a clock that is set ${how} while a delivery waits neither ends nor prolongs the wait`, async (context) => {
    const { hook, open } = world(context);
    let shiftMs = 0;
    const nowMs = (): number => Date.now() + shiftMs;
    await using receiver = await openReceiver(
      (at, response) => at >= 2 || (response.writeHead(500).end(), false),
      0,
      nowMs,
    );
    const journal = await open([hook("h", receiver.url, { events: ["user.*"] })], nowMs);
    journal.sinks.created({ id: "a", name: "a", listener: "edge" });
    await until("its first failure", () => journal.webhooks.views()[0]?.failures === 1);
    shiftMs = days * 86_400_000;
    await until("it", () => receiver.received.length === 1, { withinMs: 15_000 });
    assert.deepEqual([receiver.faults, journal.webhooks.views()[0]?.dead], [[], 0]);
  });

test("a receiver that is down for an hour is asked a few times, and then gets every event in order", async (context) => {
  const found = await proveHourDown(600);
  context.diagnostic(shownHour(found));
  assert.deepEqual(found.faults, []);
});
