/** Managed users of the real program while they move bytes: who is cut off, who is not, and what is counted. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { DatagramFlow, Destination } from "#core/session.ts";
import type { Outbound } from "#core/outbound.ts";
import { vless } from "#protocols/vless/index.ts";
import { inbox } from "../support/client.ts";
import { FLEET_VARIABLE } from "../support/fleet-beside.ts";
import { type AnyJson, ManagedCore, stateFolder } from "../support/managed-core.ts";
import { echo, openTcpOrigin, openUdpEcho } from "../support/origin.ts";
import { openClient } from "../support/protocol-pair.ts";
import { ANYTLS, type Carrier, FOREVER, isServed, Transfer } from "../support/user-traffic.ts";
import { until } from "../support/until.ts";

const isFleet = FLEET_VARIABLE in process.env;
const USERS = 50;

type Kind = Pick<Carrier, "tag" | "open" | "another">;

/** `edge` and `side` of the managed core. */
const KINDS: readonly Kind[] = [
  {
    tag: "edge",
    open: (port, { uuid }) => openClient(vless, { server: "127.0.0.1", port, uuid, udp: true }),
    another: () => ({ uuid: randomUUID() }),
  },
  { ...ANYTLS, tag: "side" },
];

interface Client extends AsyncDisposable {
  readonly user: AnyJson;
  readonly outbound: Outbound;
  connect(destination: Destination): Promise<Transfer>;
}

async function clientOf(core: ManagedCore, kind: Kind, name: string): Promise<Client> {
  const user = await core.create(kind.tag, name);
  const outbound = await kind.open(await core.core.port(kind.tag), user);
  return {
    user,
    outbound,
    connect: async (to) => new Transfer(await outbound.connect(to, { signal: FOREVER, metadata: null })),
    [Symbol.asyncDispose]: () => outbound[Symbol.asyncDispose](),
  };
}

const allRunning = (transfers: readonly Transfer[]) => {
  const before = transfers.map(({ rounds }) => rounds);
  return until("every transfer goes on", () =>
    transfers.every(({ rounds }, at) => rounds > (before[at] as number)),
  );
};

for (const kind of KINDS)
  test(`svc-admin-api §15.3 ${kind.tag}: of ${USERS} users one is disabled, and only that one is cut off, at once`, async (context) => {
    await using core = await ManagedCore.start();
    await using origin = await openTcpOrigin(echo);
    await using datagrams = await openUdpEcho();
    await using stack = new AsyncDisposableStack();
    const clients: Client[] = [];
    for (let at = 0; at < USERS; at++) clients.push(stack.use(await clientOf(core, kind, `user ${at}`)));
    const transfers = await Promise.all(clients.map((client) => client.connect(origin.destination)));
    const victim = clients[17] as Client;
    const second = await victim.connect(origin.destination); // with AnyTLS a second stream of the same session
    const flow = await victim.outbound.associate(datagrams.destination, { signal: FOREVER, metadata: null });
    await echoed(flow, datagrams.destination);
    await allRunning([...transfers, second]);
    const { active_connections } = await core.user(victim.user.id);
    assert.equal(active_connections, 3);

    await core.change(kind.tag, "PUT", `/${victim.user.id}`, { name: "renamed" });
    await core.change(kind.tag, "POST", `/${victim.user.id}/reset-traffic`);
    await core.change(kind.tag, "POST", `/${victim.user.id}/rotate-subscription`);
    await allRunning([...transfers, second]);

    const body = { enabled: false, revision: await core.revision(kind.tag) };
    const atMs = performance.now();
    await core.ask("PUT", `/api/admin/users/${victim.user.id}`, { body });
    const ends = await Promise.all([
      (transfers[17] as Transfer).closed,
      second.closed,
      flow.closed.then(now),
    ]);
    context.diagnostic(
      `${kind.tag}: the last of three sessions ended ${Math.round(Math.max(...ends) - atMs)} ms after the request`,
    );
    assert.ok(Math.max(...ends) - atMs < 2000);
    assert.equal(await isServed(victim.outbound, origin.destination), false);
    const others = transfers.filter((_, at) => at !== 17);
    await allRunning(others);
    const intact = await Promise.all(others.map((transfer) => transfer.finish()));
    assert.equal(intact.filter(Boolean).length, USERS - 1);

    await core.change(kind.tag, "PUT", `/${victim.user.id}`, { enabled: true });
    assert.equal(await isServed(victim.outbound, origin.destination), true);
    await until(
      "its sessions are gone",
      async () => (await core.user(victim.user.id)).active_connections === 0,
    );
  });

const now = () => performance.now();

async function echoed(flow: DatagramFlow, destination: Destination): Promise<void> {
  const box = inbox(flow);
  flow.send({ payload: Buffer.from("ping"), destination });
  assert.equal(Buffer.from((await box.next()).payload).toString(), "ping");
}

for (const kind of KINDS)
  test(`${kind.tag}: another credential and deletion end the user's sessions, and the new credential works`, async () => {
    await using core = await ManagedCore.start();
    await using origin = await openTcpOrigin(echo);
    await using alice = await clientOf(core, kind, "alice");
    await using bob = await clientOf(core, kind, "bob");
    const [first, other] = [await alice.connect(origin.destination), await bob.connect(origin.destination)];
    await allRunning([first, other]);
    const fields = kind.another();
    await core.change(kind.tag, "PUT", `/${alice.user.id}`, fields);
    await first.closed;
    assert.equal(await isServed(alice.outbound, origin.destination), false);
    await using again = await kind.open(await core.core.port(kind.tag), { ...alice.user, ...fields });
    const stream = await again.connect(origin.destination, { signal: FOREVER, metadata: null });
    const second = new Transfer(stream);
    await allRunning([second, other]);
    await core.change(kind.tag, "DELETE", `/${alice.user.id}`);
    await second.closed;
    assert.equal(await other.finish(), true);
  });

test("edge: another flow ends the user's sessions", async () => {
  await using core = await ManagedCore.start();
  await using origin = await openTcpOrigin(echo);
  await using alice = await clientOf(core, KINDS[0] as Kind, "alice");
  const transfer = await alice.connect(origin.destination);
  await allRunning([transfer]);
  await core.change("edge", "PUT", `/${alice.user.id}`, { flow: "xtls-rprx-vision" });
  await transfer.closed;
  assert.equal(await isServed(alice.outbound, origin.destination), false);
});

for (const kind of KINDS)
  test(`${kind.tag}: while others change a hundred times, no handshake of a user is dropped`, async () => {
    await using core = await ManagedCore.start();
    await using origin = await openTcpOrigin(echo);
    await using alice = await clientOf(core, kind, "alice");
    const other = await core.create(kind.tag, "other");
    let changing = true;
    let handshakes = 0;
    const changeUsers = async (): Promise<void> => {
      while (changing) {
        await using client = await kind.open(await core.core.port(kind.tag), alice.user);
        assert.equal(await isServed(client, origin.destination), true, `handshake ${handshakes}`);
        handshakes++;
      }
    };
    const all = Promise.all([changeUsers(), changeUsers(), changeUsers()]);
    for (let at = 0; at < 100; at++)
      await core.change(kind.tag, "PUT", `/${other.id}`, { enabled: at % 2 === 1, ...kind.another() });
    changing = false;
    await all;
    assert.ok(handshakes > 0);
  });

test("a reload with another listener keeps sessions, and a later change still finds them", async () => {
  await using core = await ManagedCore.start();
  await using origin = await openTcpOrigin(echo);
  const [edge] = KINDS as [Kind];
  await using alice = await clientOf(core, edge, "alice");
  await using bob = await clientOf(core, edge, "bob");
  const transfers = [await alice.connect(origin.destination), await bob.connect(origin.destination)] as const;
  await allRunning(transfers);
  const text = await core.ask("PUT", "/configs?force=true", {
    secret: "controller secret",
    body: {
      payload: core.configText.replace(
        "    allow-insecure: true",
        "    allow-insecure: true\n    ws-path: /new",
      ),
    },
  });
  assert.equal(text.status, 204, text.text);
  await allRunning(transfers);
  await core.change("edge", "PUT", `/${alice.user.id}`, { enabled: false });
  await transfers[0].closed;
  assert.equal(await transfers[1].finish(), true);
});

async function countsOf(core: ManagedCore, id: string): Promise<readonly number[]> {
  const { upload_bytes, download_bytes } = await core.user(id);
  return [upload_bytes, download_bytes];
}

/** All steps of what the program remembers together. */
async function lastDayOf(core: ManagedCore, id: string): Promise<readonly number[]> {
  const { status, text } = await core.ask("GET", `/api/admin/users/${id}/usage`);
  assert.equal(status, 200);
  const { steps } = JSON.parse(text) as {
    steps: readonly { start: number; upload_bytes: number; download_bytes: number }[];
  };
  const stepMs = isFleet ? 3_600_000 : 300_000;
  assert.ok(steps.every(({ start }) => start % stepMs === 0 && Math.abs(Date.now() - start) < 3 * stepMs));
  const sum = (field: "upload_bytes" | "download_bytes") => steps.reduce((all, step) => all + step[field], 0);
  return [sum("upload_bytes"), sum("download_bytes")];
}

/** All days of the history together; a fleet keeps none. */
async function historyOf(core: ManagedCore, id: string): Promise<readonly number[] | null> {
  const { status, text, json } = await core.ask("GET", `/api/admin/users/${id}/history`);
  if (isFleet) {
    assert.equal(status, 404);
    assert.match(text, /a fleet keeps no history/);
    return null;
  }
  assert.equal(status, 200, text);
  const { days, hours } = json as unknown as Record<"days" | "hours", readonly Step[]>;
  const sumOf = (steps: readonly Step[]) => [
    steps.reduce((sum, step) => sum + step.upload_bytes, 0),
    steps.reduce((sum, step) => sum + step.download_bytes, 0),
  ];
  assert.ok(days.every(({ start }) => start % 86_400_000 === 0));
  assert.deepEqual(sumOf(hours), sumOf(days), "the test takes less than two days");
  return sumOf(days);
}

interface Step {
  readonly start: number;
  readonly upload_bytes: number;
  readonly download_bytes: number;
}

test("bytes are counted per user and direction, and survive a clean restart to the last one", async () => {
  using state = stateFolder();
  const options = { store: state.store, folder: state.path };
  const wanted: {
    readonly id: string;
    readonly counts: readonly number[];
    readonly day: number;
    readonly history: number;
  }[] = [];
  {
    await using core = await ManagedCore.start(options);
    await using origin = await openTcpOrigin(echo);
    for (const kind of KINDS) {
      await using client = await clientOf(core, kind, "alice");
      const transfer = await client.connect(origin.destination);
      await allRunning([transfer]);
      assert.equal(await transfer.finish(), true);
      const counts = [transfer.bytes, transfer.bytes];
      assert.deepEqual(await countsOf(core, client.user.id), counts);
      assert.deepEqual(await lastDayOf(core, client.user.id), counts);
      await core.change(kind.tag, "POST", `/${client.user.id}/reset-traffic`);
      assert.deepEqual(
        await lastDayOf(core, client.user.id),
        counts,
        "that day has been, whatever is counted anew",
      );
      const more = await client.connect(origin.destination);
      await allRunning([more]);
      assert.equal(await more.finish(), true);
      assert.deepEqual(await countsOf(core, client.user.id), [more.bytes, more.bytes]);
      const day = isFleet ? transfer.bytes + more.bytes : 0; // a program alone keeps the day in memory only
      const history = transfer.bytes + more.bytes;
      wanted.push({ id: client.user.id, counts: [more.bytes, more.bytes], day, history });
    }
    assert.equal(await core.core.stop(), 0);
  }
  await using core = await ManagedCore.start(options);
  for (const { id, counts } of wanted) assert.deepEqual(await countsOf(core, id), counts);
  for (const { id, day } of wanted) assert.deepEqual(await lastDayOf(core, id), [day, day]);
  assert.equal((await core.ask("GET", "/api/admin/users/unknown/usage")).status, 404);
  for (const { id, history } of wanted) {
    const found = await historyOf(core, id);
    if (found !== null) assert.deepEqual(found, [history, history]);
  }
  const [first] = wanted;
  const reset = await core.change("edge", "POST", `/${first?.id}/reset-traffic`);
  assert.deepEqual([reset.upload_bytes, reset.download_bytes, reset.traffic_generation], [0, 0, 3]);
});

test("kill -9 under load costs at most what the last second moved", async (context: TestContext) => {
  using state = stateFolder();
  const options = { store: state.store, folder: state.path };
  const [edge] = KINDS as [Kind];
  let id: string;
  let before: readonly number[];
  {
    await using core = await ManagedCore.start(options);
    await using origin = await openTcpOrigin(echo);
    await using alice = await clientOf(core, edge, "alice");
    id = alice.user.id;
    const transfer = await alice.connect(origin.destination);
    await allRunning([transfer]);
    before = await countsOf(core, id);
    await sleep(1500); // longer than the interval of the checkpoints: what was counted before is on the disk
    await core.core.stop("SIGKILL");
    transfer.stream.destroy();
  }
  await using core = await ManagedCore.start(options);
  const after = await countsOf(core, id);
  context.diagnostic(
    `counted ${before.join("/")} a second and a half before the kill, ${after.join("/")} are left`,
  );
  assert.ok((after[0] as number) >= (before[0] as number) && (after[1] as number) >= (before[1] as number));
  const history = await historyOf(core, id);
  if (history !== null) assert.deepEqual(history, after, "they were written together");
});

const noFleet = isFleet ? "SKIP a fleet keeps no history" : false;

test("a history is asked for by 1 to 62 days, by who may read users", { skip: noFleet }, async () => {
  await using core = await ManagedCore.start();
  const { id } = await core.create("edge", "alice");
  const ask = (query: string) => core.ask("GET", `/api/admin/users/${id}/history${query}`);
  assert.deepEqual((await ask("?days=62")).json, { days: [], hours: [] });
  for (const days of ["0", "63", "-1", "1.5", "many", ""]) {
    const { status, text } = await ask(`?days=${days}`);
    assert.equal(status, 400, days);
    assert.match(text, /days: expected a (whole )?number/);
  }
  assert.equal((await core.ask("GET", "/api/admin/users/unknown/history")).status, 404);
  assert.equal((await core.ask("GET", `/api/admin/users/${id}/history`, { secret: null })).status, 401);
});

test("a second signal while sessions are waited for costs no counted byte", async () => {
  using state = stateFolder();
  const options = { store: state.store, folder: state.path };
  const [edge] = KINDS as [Kind];
  let id = "";
  let counts: readonly number[] = [];
  {
    await using core = await ManagedCore.start(options);
    await using origin = await openTcpOrigin(echo);
    await using alice = await clientOf(core, edge, "alice");
    ({ id } = alice.user);
    const stream = await alice.outbound.connect(origin.destination, { signal: FOREVER, metadata: null });
    stream.on("error", () => {}); // it is cut off
    const answered = once(stream, "data");
    stream.write("counted, and then the end");
    await answered;
    counts = await countsOf(core, id);
    process.kill(core.core.pid, "SIGTERM");
    await core.core.shows(/shutting down/);
    assert.equal(await core.core.stop(), 0);
  }
  await using core = await ManagedCore.start(options);
  assert.deepEqual(counts, [25, 25]);
  assert.deepEqual(await countsOf(core, id), counts);
});
