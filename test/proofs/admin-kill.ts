/**
 * The program is killed in the middle of changes, again and again: what was answered has its entry in the audit log, whose
 * chain is whole, and its event reaches every webhook at least once, the events of a user in their order,
 * also receivers that fail, redirect, close without an answer or in the middle, or are slow.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { CONTROLLER_SECRET, ManagedCore, stateFolder } from "../support/managed-core.ts";
import { until } from "../support/until.ts";
import {
  disorderOf,
  openReceiver,
  SIGNING_SECRET,
  slowBy,
  WRONG,
  type Behave,
  type Receiver,
} from "../support/webhook-receiver.ts";

export interface AdminKillFindings {
  readonly kills: number;
  readonly acknowledged: number;
  readonly entries: number;
  /** That every receiver has. */
  readonly events: number;
  readonly faults: readonly string[];
}

/** What was acknowledged, by the ids of requests, and which events that takes. */
interface Ledger {
  readonly requests: string[];
  /** By user: types in the order of the changes. */
  readonly events: Map<string, string[]>;
}

export async function proveAdminKills(
  kills: number,
  random: (below: number) => number,
  said: (found: AdminKillFindings) => void = () => {},
): Promise<AdminKillFindings> {
  using state = stateFolder();
  await using closing = new AsyncDisposableStack();
  const receivers = new Map<string, Receiver>();
  for (const [name, behave] of behaviours(random))
    receivers.set(name, closing.use(await openReceiver(behave)));
  const ledger: Ledger = { requests: [], events: new Map() };
  const faults: string[] = [];
  let entries = 0;
  const findings = (round: number): AdminKillFindings => ({
    kills: round,
    acknowledged: ledger.requests.length,
    entries,
    events: Math.min(
      ...[...receivers.values()].map(({ received }) => new Set(received.map(({ seq }) => seq)).size),
    ),
    faults,
  });
  for (let round = 0; round <= kills; round++) {
    await using core = await ManagedCore.start({
      store: state.store,
      folder: state.path,
      svc: svcFor([...receivers.values()]),
    });
    const log = await auditOf(core);
    entries = log.length;
    faults.push(...(await missing(core, log, ledger)).map((text) => `after kill ${round}: ${text}`));
    if (round === kills) {
      await until("every delivery", () => isDelivered(core), { everyMs: 200, withinMs: 120_000 });
      break;
    }
    const before = ledger.requests.length;
    const writing = Promise.all([
      writeUsers(core, "edge", ledger, random),
      writeUsers(core, "side", ledger, random),
      writeSettings(core, ledger),
    ]);
    const some = 1 + random(12);
    while (ledger.requests.length < before + some) await sleep(1);
    await sleep(random(15)); // into the middle of the next one
    await core.core.stop("SIGKILL");
    await writing;
    if (round % 25 === 24) said(findings(round + 1));
  }
  for (const [name, receiver] of receivers)
    for (const fault of [
      ...eventFaults(ledger, receiver),
      ...disorderOf(receiver.received),
      ...receiver.faults,
    ])
      faults.push(`the receiver that ${name}: ${fault}`);
  return findings(kills);
}

/** Each goes wrong in one of twenty requests, in its own way; one is slow. */
function behaviours(random: (below: number) => number): readonly (readonly [name: string, behave: Behave])[] {
  const rough = Object.entries(WRONG).map(([name, wrong]): readonly [string, Behave] => [
    name,
    (_at, response) => random(20) > 0 || (wrong(response), false),
  ]);
  return [...rough, ["is slow", slowBy(30)]];
}

function svcFor(receivers: readonly Receiver[]): string {
  const hooks = receivers.map(
    ({ url }, at) =>
      `  - {name: proof-${at}, url: "${url}", secret: "${SIGNING_SECRET}", allow-private: true}`,
  );
  return `webhooks:
${hooks.join("\n")}
audit: {entries: 100000}`;
}

interface Line {
  readonly request: string;
}

async function auditOf(core: ManagedCore): Promise<readonly Line[]> {
  const { text } = await core.ask("GET", "/api/svc/audit/export.ndjson");
  return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Line]));
}

async function missing(
  core: ManagedCore,
  log: readonly Line[],
  { requests }: Ledger,
): Promise<readonly string[]> {
  const known = new Set(log.map(({ request }) => request));
  const lost = requests.filter((request) => !known.has(request)).map((request) => `no entry of ${request}`);
  const verdict = (await core.ask("GET", "/api/svc/audit/verify")).json as unknown as {
    faults: readonly string[];
  };
  return [...lost, ...verdict.faults];
}

async function isDelivered(core: ManagedCore): Promise<boolean> {
  const { json } = await core.ask("GET", "/api/svc/webhooks");
  return (json as unknown as { webhooks: { pending: number }[] }).webhooks.every(
    ({ pending }) => pending === 0,
  );
}

/** Creates users of a listener and switches them, until the program is gone. */
async function writeUsers(
  core: ManagedCore,
  tag: "edge" | "side",
  ledger: Ledger,
  random: (below: number) => number,
): Promise<void> {
  const ids: string[] = [];
  let isEnabled = true;
  await endless(async () => {
    const revision = await core.revision(tag);
    const id = random(2) === 0 ? ids.at(-1) : undefined;
    if (id === undefined) {
      isEnabled = true;
      const said = await core.ask("POST", "/api/admin/users", {
        body: { inbound: tag, name: randomUUID(), revision },
      });
      if (said.status !== 201) throw new Error(said.text);
      ids.push(said.json.id);
      ledger.events.set(said.json.id, ["user.created"]);
      ledger.requests.push(said.headers.get("x-request-id") ?? "none");
    } else {
      isEnabled = !isEnabled;
      const said = await core.ask("PUT", `/api/admin/users/${id}`, {
        body: { enabled: isEnabled, revision },
      });
      if (said.status !== 200) throw new Error(said.text);
      ledger.events.get(id)?.push(isEnabled ? "user.enabled" : "user.disabled");
      ledger.requests.push(said.headers.get("x-request-id") ?? "none");
    }
  });
}

async function writeSettings(core: ManagedCore, ledger: Ledger): Promise<void> {
  await endless(async () => {
    const said = await core.ask("PATCH", "/configs", {
      body: { "unified-delay": true },
      secret: CONTROLLER_SECRET,
    });
    if (said.status !== 204) throw new Error(said.text);
    ledger.requests.push(said.headers.get("x-request-id") ?? "none");
  });
}

async function endless(change: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await change();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // of `fetch`: the program has ended
      return;
    }
  }
}

/** The acknowledged events of a user are there in their order; one more may be, of a change that was not answered. */
function eventFaults({ events }: Ledger, { received }: Receiver): readonly string[] {
  const bySubject = Map.groupBy(
    [...new Map(received.map((event) => [event.seq, event])).values()].sort((a, b) => a.seq - b.seq),
    ({ subject }) => subject,
  );
  return [...events].flatMap(([id, wanted]) => {
    const got = (bySubject.get(`user/${id}`) ?? []).map(({ type }) => type);
    return wanted.every((type, at) => got[at] === type)
      ? []
      : [`user ${id}: ${wanted.join(" ")}, but ${got.join(" ")}`];
  });
}

export function shownAdminKills({ kills, acknowledged, entries, events, faults }: AdminKillFindings): string {
  return `${kills} kills, ${acknowledged} changes acknowledged, ${entries} entries, ${events} events delivered, ${faults.length} faults`;
}
