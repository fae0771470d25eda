/** `GET /api/svc/events` of the real program: what happens, what was missed, and the end of the token that opened it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CONTROLLER_SECRET, ManagedCore, stateFolder } from "../support/managed-core.ts";
import { until } from "../support/until.ts";

interface Message {
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** A client of the stream; `messages` grows as they come. */
async function listen(core: ManagedCore, secret: string, query = "", headers: Record<string, string> = {}) {
  const stop = new AbortController();
  const answer = await fetch(`${core.url}/api/svc/events${query}`, {
    headers: { authorization: `Bearer ${secret}`, ...headers },
    signal: stop.signal,
  });
  assert.equal(answer.status, 200);
  assert.match(String(answer.headers.get("content-type")), /^text\/event-stream/);
  const messages: Message[] = [];
  const state = { isOver: false };
  void (async () => {
    let text = "";
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk).toString();
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks.filter((one) => one.includes("event:"))) messages.push(messageIn(block));
    }
  })()
    .catch(() => {}) // we, or the server, have ended it
    .finally(() => (state.isOver = true));
  return { messages, state, [Symbol.dispose]: () => stop.abort(new Error("enough")) };
}

function messageIn(block: string): Message {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
  return { id: field("id"), event: field("event"), data: field("data") };
}

const eventsOf = (messages: readonly Message[]) => messages.map(({ event }) => event);

test("a client gets what happens, then what it has missed, also behind kill -9; a stream ends with its token", async () => {
  using state = stateFolder();
  const where = { folder: state.path, store: state.store };
  let last = "";
  {
    await using core = await ManagedCore.start(where);
    using client = await listen(core, CONTROLLER_SECRET, "?types=user.*");
    const { id } = await core.create("edge", "alice");
    await until("her event", () => client.messages.length === 1);
    const [created] = client.messages;
    assert.equal(created?.event, "user.created");
    const { seq, subject, data } = JSON.parse(created.data) as {
      seq: number;
      subject: string;
      data: unknown;
    };
    assert.deepEqual([String(seq), subject], [created.id, `user/${id}`]);
    assert.deepEqual(data, { user: { id, name: "alice", listener: "edge" } });
    last = created.id;
    await core.change("edge", "PUT", `/${id}`, { enabled: false });
    await core.change("edge", "DELETE", `/${id}`);
    await core.core.stop("SIGKILL");
  }
  await using core = await ManagedCore.start(where);
  using back = await listen(core, CONTROLLER_SECRET, "?types=user.*", { "last-event-id": last });
  await until(
    () => `what was missed: ${eventsOf(back.messages).join(" ")}`,
    () => back.messages.length === 2,
  );
  assert.deepEqual(eventsOf(back.messages), ["user.disabled", "user.deleted"]);
  using lost = await listen(core, CONTROLLER_SECRET, "?after=99999");
  await until("the gap", () => lost.messages.length === 1);
  assert.deepEqual(eventsOf(lost.messages), ["events.gap"]);

  const body = { name: "watcher", scopes: ["read"] };
  const made = (await core.ask("POST", "/api/svc/tokens", { body })).json as unknown as Record<
    "id" | "token",
    string
  >;
  using watcher = await listen(core, made.token);
  assert.equal((await core.ask("DELETE", `/api/svc/tokens/${made.id}`)).status, 204);
  await until("its end", () => watcher.state.isOver);
  assert.equal(back.state.isOver, false);
});

test("what a configuration means is reported: applied, refused, a listener that is gone", async () => {
  await using core = await ManagedCore.start();
  using client = await listen(core, CONTROLLER_SECRET, "?after=0");
  const ask = (payload: string) =>
    core.ask("PUT", "/configs?force=true", { secret: CONTROLLER_SECRET, body: { payload } });
  assert.equal((await ask("mode: nonsense")).status, 400);
  const without = core.configText
    .replace("[edge, side]", "[edge]")
    .replace(/ {2}- name: side[^]*?(?=rules:)/, "");
  assert.equal((await ask(without)).status, 204);
  await until(
    () => eventsOf(client.messages).join(" "),
    () =>
      client.messages.some(
        ({ event, data }) => event === "listener.down" && data.includes('"listener/side"'),
      ),
  );
  const config = client.messages.filter(({ event }) => event.startsWith("config."));
  assert.deepEqual(eventsOf(config), ["config.applied", "config.refused", "config.applied"]);
});
