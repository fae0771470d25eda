/** A receiver of webhooks that is down for an hour, by a shifted clock, while events go on. */
import { join } from "node:path";
import { freePort } from "../support/peer.ts";
import { stateFolder } from "../support/managed-core.ts";
import { openSendingJournal, webhookTo } from "../support/sending-journal.ts";
import { until } from "../support/until.ts";
import { disorderOf, openReceiver, WELL } from "../support/webhook-receiver.ts";

export interface HourFindings {
  readonly events: number;
  /** While it was down. */
  readonly attempts: number;
  /** From the moment at which it listened again, by the shifted clock. */
  readonly backAfterMinutes: number;
  readonly heapMiB: number;
  readonly faults: readonly string[];
}

const SUBJECTS = 100;
const MINUTE_MS = 60_000;
/** 1 + 2 + … + 512 s are the first ten waits, then one every ten minutes. */
const MOST_ATTEMPTS = 10 + 60 / 10;

export async function proveHourDown(events: number): Promise<HourFindings> {
  using folder = stateFolder();
  let shiftMs = 0;
  const nowMs = (): number => Date.now() + shiftMs;
  const port = await freePort();
  const hook = webhookTo("down", `http://127.0.0.1:${port}/`);
  const journal = await openSendingJournal(join(folder.path, "users.db.journal"), [hook], nowMs);
  try {
    const state = () => journal.webhooks.views()[0] ?? { pending: 0, failures: 0, dead: 0 };
    const inMinute = Math.ceil(events / 60);
    let reported = 1; // the first start
    const minute = async (): Promise<void> => {
      for (let at = 0; at < inMinute; at++, reported++) {
        const id = `${reported % SUBJECTS}`;
        journal.sinks.changed({ id, name: id, listener: "edge" }, ["name"]);
      }
      shiftMs += MINUTE_MS;
    };
    for (let at = 0; at < 60; at++) {
      await minute();
      await until("the events to be kept", () => state().pending === reported, { everyMs: 5 });
    }
    const attempts = state().failures;
    const heapMiB = process.memoryUsage().heapUsed / 2 ** 20;
    await using receiver = await openReceiver(WELL, port, nowMs);
    let backAfterMinutes = 0;
    while (receiver.received.length === 0 && backAfterMinutes < 15) {
      await minute();
      backAfterMinutes++;
      await until("an attempt, or none", () => state().pending > 0 || receiver.received.length > 0);
      await new Promise((resolve) => setTimeout(resolve, 50)); // nothing tells that no attempt is made
    }
    await until("every delivery", () => state().pending === 0, { withinMs: 120_000 });
    const got = new Set(receiver.received.map(({ seq }) => seq));
    const faults = [...disorderOf(receiver.received), ...receiver.faults];
    if (got.size !== reported) faults.push(`${got.size} of ${reported} events came`);
    if (state().dead > 0) faults.push(`${state().dead} were given up`);
    if (attempts > MOST_ATTEMPTS) faults.push(`it was asked ${attempts} times while it was down`);
    return { events: reported, attempts, backAfterMinutes, heapMiB, faults };
  } finally {
    journal.close();
  }
}

export function shownHour({ events, attempts, backAfterMinutes, heapMiB, faults }: HourFindings): string {
  return `a receiver down for an hour: ${attempts} attempts, ${events} events, all of them there when it was asked again ${backAfterMinutes} minutes behind its return, heap ${heapMiB.toFixed(0)} MiB with all of them waiting, ${faults.length} faults`;
}
