/** Users that are removed behind a reload, whose connections were there before it, and had no stream meanwhile. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import * as http2 from "#transport/http2/frames.ts";
import { type FrameClient, framesTo, type Http2Kind, KINDS, vlessTo } from "../support/kept-http2.ts";
import { CONTROLLER_SECRET, edgeAndSide, ManagedCore } from "../support/managed-core.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { uuid } from "../support/tls-sides.ts";
import { until } from "../support/until.ts";

const PLAIN = KINDS["vless over grpc, plain"] as Http2Kind;
const edge = (more: string, users: string): string =>
  edgeAndSide(users, `    grpc-service-name: Gun\n${more}`);

async function reload(core: ManagedCore, payload: string): Promise<void> {
  const said = await core.ask("PUT", "/configs?force=true", { secret: CONTROLLER_SECRET, body: { payload } });
  assert.equal(said.status, 204, said.text);
  await delay(500); // what was in force has no sessions, and ends
}

/** With a stream that has ended. */
async function begin(core: ManagedCore, port: number, id: string): Promise<FrameClient> {
  const client = await framesTo(PLAIN, await core.core.port("edge"));
  await speaks(client, 1, port, id);
  client.send(http2.encodeNumber(http2.RST_STREAM, 1, http2.CANCEL));
  await delay(300);
  return client;
}

async function speaks(client: FrameClient, stream: number, port: number, id: string): Promise<void> {
  client.open(stream, Buffer.concat([vlessTo(port, id), Buffer.from("ping")]));
  assert.equal(String(await client.got(stream, 6)).slice(2), "ping");
}

async function isRefused(client: FrameClient, stream: number, port: number, id: string): Promise<void> {
  client.open(stream, Buffer.concat([vlessTo(port, id), Buffer.from("ping")]));
  await until("it is refused", () => {
    const { isOver, resetBy } = client.heard(stream);
    return isOver || resetBy !== null || client.isClosed;
  });
  assert.equal(client.heard(stream).data.length, 0);
}

for (const [where, more] of [
  ["in a worker", ""],
  ["in the event loop", "    ws-path: /ws\n"],
] as const) {
  test(`managed ones get no further stream, and lose what they have open: ${where}`, async () => {
    await using core = await ManagedCore.start({ listeners: edge(more, "[]") });
    await using origin = await openTcpOrigin(echo);
    const [alice, bob] = [await core.create("edge", "alice"), await core.create("edge", "bob")];
    const [first, second] = [
      await begin(core, origin.port, alice.uuid),
      await begin(core, origin.port, bob.uuid),
    ];
    await reload(
      core,
      core.configText.replace("grpc-service-name", "routing-mark: 7\n    grpc-service-name"),
    );
    await speaks(second, 3, origin.port, bob.uuid);
    for (const { id } of [alice, bob]) await core.change("edge", "DELETE", `/${id}`);
    await until("the stream has ended", () => second.heard(3).resetBy !== null || second.heard(3).isOver);
    await isRefused(first, 3, origin.port, alice.uuid);
    await isRefused(second, 5, origin.port, bob.uuid);
    for (const { socket } of [first, second]) socket.destroy();
  });

  test(`users of the file get no further stream: ${where}`, async () => {
    const users = `[{ username: ann, uuid: ${uuid} }]`;
    await using core = await ManagedCore.start({ managed: ["side"], listeners: edge(more, users) });
    await using origin = await openTcpOrigin(echo);
    const client = await begin(core, origin.port, uuid);
    const text = core.configText.replace("grpc-service-name", "routing-mark: 7\n    grpc-service-name");
    await reload(core, text);
    await speaks(client, 3, origin.port, uuid);
    client.send(http2.encodeNumber(http2.RST_STREAM, 3, http2.CANCEL));
    await delay(300);
    await reload(
      core,
      text.replace(users, "[{ username: bob, uuid: 11111111-2222-3333-4444-555555555555 }]"),
    );
    await isRefused(client, 5, origin.port, uuid);
    client.socket.destroy();
  });
}
