/** The real program with connections on its workers, and the same by the event loop. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { test } from "node:test";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openRawClient, type RawClient } from "../support/raw-client.ts";
import { startCore } from "../support/start-core.ts";
import { until } from "../support/until.ts";

interface Row {
  readonly id: string;
  readonly upload: number;
  readonly download: number;
  readonly metadata: { readonly remoteDestination: string; readonly sourcePort: string };
}

interface Connections {
  readonly uploadTotal: number;
  readonly downloadTotal: number;
  readonly connections: readonly Row[] | null;
}

async function connections(controller: number): Promise<Connections> {
  return (await (await fetch(`http://127.0.0.1:${controller}/connections`)).json()) as Connections;
}

async function tunnel(mixed: number, originPort: number): Promise<RawClient> {
  const client = await openRawClient(mixed);
  client.send(`CONNECT 127.0.0.1:${originPort} HTTP/1.1\r\n\r\n`);
  await client.until("\r\n\r\n");
  return client;
}

/** More than a connection moves before it is handed over. */
async function exchange(client: RawClient, rounds: number): Promise<number> {
  const block = randomBytes(50_000);
  for (let round = 0; round < rounds; round++) {
    client.send(block);
    assert.ok(block.equals(await client.read(block.length)));
  }
  return rounds * block.length;
}

for (const relay of ["auto", "portable"])
  test(`relay: ${relay}: counted to the byte, killed one at a time, alive over a reload, gone at the end`, async () => {
    const [mixed, controller] = (await freePorts(2)) as [number, number];
    await using origin = await openTcpOrigin(echo);
    const config = `relay: ${relay}\nmixed-port: ${mixed}\nexternal-controller: 127.0.0.1:${controller}\nrules: ["MATCH,DIRECT"]\n`;
    await using core = await startCore(config);
    assert.match(
      core.output(),
      relay === "auto" ? /relay: \d+ worker threads/ : /relay: the event loop alone/,
    );
    const [first, second] = [await tunnel(mixed, origin.port), await tunnel(mixed, origin.port)];
    const moved = (await exchange(first, 20)) + (await exchange(second, 20));

    // Rows are a moment old at most.
    let seen = await connections(controller);
    await until("all is counted", async () => (seen = await connections(controller)).uploadTotal >= moved);
    assert.deepEqual([seen.uploadTotal, seen.downloadTotal], [moved, moved]);
    for (const row of seen.connections ?? []) {
      assert.deepEqual([row.upload, row.download], [moved / 2, moved / 2]);
      assert.equal(row.metadata.remoteDestination, "127.0.0.1");
    }

    const reset = once(first.socket, "error");
    const port = String(first.socket.localPort);
    const killed = seen.connections?.find(({ metadata }) => metadata.sourcePort === port);
    const ids = new Set(seen.connections?.map(({ id }) => id));
    assert.equal(ids.size, 2);
    const kill = await fetch(`http://127.0.0.1:${controller}/connections/${killed?.id}`, {
      method: "DELETE",
    });
    assert.equal(kill.status, 204);
    assert.equal(((await reset) as [NodeJS.ErrnoException])[0].code, "ECONNRESET");
    await exchange(second, 2);

    await core.reload(`${config}log-level: debug\n`);
    await exchange(second, 2);
    const left = await connections(controller);
    assert.deepEqual(
      left.connections?.map(({ id }) => ids.has(id) && id !== killed?.id),
      [true],
    );

    const ended = once(second.socket, "error").catch(() => {});
    assert.equal(await core.stop("SIGTERM"), 0); // after the time for sessions that go on
    await ended;
    assert.doesNotMatch(core.output(), /a fault of weir|not everything ended|level=error/);
  });
