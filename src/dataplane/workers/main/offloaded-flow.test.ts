/** The main thread's side of a limited connection, beside a worker that runs when the test says so. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Meter, MeterObserver } from "#core/meter.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { OffloadedFlow } from "./offloaded-flow.ts";
import { Commands, type CommandObserver } from "./commands.ts";
import type { TaskIo } from "#dataplane/workers/worker/task.ts";
import { RelayDirection } from "#dataplane/workers/worker/relay-direction.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";
import { Readiness } from "#dataplane/workers/wire/readiness.ts";
import type { WorkerHandle } from "./worker-handle.ts";
import { newRelayMemory, RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { CLOSE, GRANT_WANTED, COMMANDS, GRANT, LIMIT, RESET } from "#dataplane/workers/shared/opcodes.ts";

const ARRIVED_BYTES = 1_000_000;
const PIECE_BYTES = 10_000;

/** There is always more, and it takes whatever it is given. */
class Bulk extends Readiness implements Wire {
  readonly pending = false;
  readonly fd = -1;
  read = (_io: TaskIo, size: number): number => size;
  available = (): number => ARRIVED_BYTES;
  write = (_io: TaskIo, size: number): number => size;
  flush = (): number => 0;
  endWriting = (): number => 0;
  drop(): void {}
}

/** With one connection, of which only the upload has anything to move. */
class StillThread {
  readonly table = new RelayMemory(newRelayMemory());
  readonly reported = new Float64Array(2);
  readonly #commands = new Commands(this.table, { raiseSignal() {} } as never);
  readonly #half = new RelayDirection(new Bulk(), new Bulk(), 0);
  readonly #io = {
    counts: this.table.counts,
    bufferedBytes: 0,
    ask: (index: number, bytes: number) => {
      this.table.asked[index] = bytes;
      this.table.report(0, GRANT_WANTED);
    },
  } as unknown as TaskIo;
  flow: OffloadedFlow | null = null;

  constructor() {
    this.#half.limit(true);
    this.#half.run(this.#io, false);
  }

  /** Does as it was told, as the loop of a thread would. */
  run(): void {
    for (let word = this.table.nextCommand(); word >= 0; word = this.table.nextCommand()) {
      if (word % COMMANDS === RESET) continue;
      if (word % COMMANDS === GRANT) this.#half.grant(this.table.asked[0] as number);
      else this.#half.limit(word % COMMANDS === LIMIT);
      this.#half.run(this.#io, false);
    }
  }

  /** The commands to it, which it does not obey. */
  told(): number[] {
    const words: number[] = [];
    for (let word = this.table.nextCommand(); word >= 0; word = this.table.nextCommand()) words.push(word);
    return words;
  }

  /** The main thread gets its events, to the end of that turn. */
  async delivered(): Promise<void> {
    this.takeEvents();
    await Promise.resolve();
    await Promise.resolve();
  }

  command(slot: number, command: number, observer: CommandObserver | null = null): number {
    return this.#commands.post(slot, command, observer);
  }

  takeEvents(): void {
    this.#commands.look();
    this.table.takeEvents(() => this.flow?.onGrantRequest("upload"));
  }
}

function start(idleMs = Infinity) {
  const thread = new StillThread();
  const seen = { paid: 0, late: 0, out: 0 };
  let observer: MeterObserver | null = null;
  const meter = {
    pieceBytes: PIECE_BYTES,
    free: false as boolean,
    observe: (next: MeterObserver | null) => void (observer = next),
    reserve: (_: unknown, bytes: number) => ((seen.paid += bytes), 0),
    trySend: () => 0,
    sent: () => void seen.out++,
    adjust: (_: unknown, bytes: number) => void (seen.late += bytes),
    admit: () => true,
    [Symbol.dispose]() {},
  } satisfies Meter;
  const timeouts = { timers: new IdleTimers(), idleMs, halfClosedIdleMs: Infinity };
  const owner = { onBytes() {}, onEnded() {} };
  const flow = new OffloadedFlow(thread as unknown as WorkerHandle, meter, timeouts, owner);
  thread.flow = flow;
  thread.table.limited[0] = 1;
  flow.join(0);
  const setFree = async (free: boolean): Promise<void> => {
    meter.free = free;
    observer?.onMeterChange();
    await Promise.resolve();
  };
  return { thread, seen, flow, setFree, [Symbol.dispose]: () => timeouts.timers.slow.remove(flow) };
}

test("a question from before a time without limits is not answered behind it", async () => {
  using connection = start();
  const { thread, seen, setFree } = connection;
  await setFree(true); // the thread has asked; neither has looked
  await setFree(false);
  await thread.delivered();
  thread.run();
  const whileFree = thread.table.counts[0] as number;
  assert.equal(seen.paid, 0);
  await thread.delivered();
  for (let pieces = 1; pieces <= 3; pieces++) {
    thread.run(); // told to ask, and from then on given leave
    await thread.delivered();
    assert.equal(seen.paid, pieces * PIECE_BYTES);
    assert.equal(thread.table.counts[0], whileFree + (pieces - 1) * PIECE_BYTES);
  }
  assert.equal(seen.late, whileFree);
});

test("a connection is not idle whose question for leave was not read yet; one that asks for nothing is", () => {
  for (const [isRead, commands] of [
    [false, [GRANT]],
    [true, [GRANT, CLOSE]],
  ] as const) {
    using connection = start(1_000);
    const { thread, flow } = connection;
    if (isRead) thread.takeEvents();
    flow.activeAtMs -= 10_000; // this thread has stood still
    flow.expire();
    assert.deepEqual(thread.told(), commands);
  }
});

test("what was given leave for is out when the thread has obeyed, and not before", async () => {
  using connection = start();
  const { thread, seen } = connection;
  await thread.delivered();
  assert.deepEqual([seen.paid, seen.out], [PIECE_BYTES, 0]);
  await thread.delivered();
  assert.equal(seen.out, 0);
  thread.run();
  await thread.delivered();
  assert.equal(seen.out, 1);
});

test("however often a connection is changed and ended while the thread stands still, the queue keeps its bound", async () => {
  using connection = start();
  const { thread, flow, setFree } = connection;
  await thread.delivered();
  for (let times = 0; times < 100; times++) {
    await setFree(times % 2 === 0);
    flow.reset();
    flow.expire();
  }
  assert.equal(thread.table.commandsLeft, 3); // leave, one change and one end
  thread.run();
  await thread.delivered();
  assert.equal(thread.table.commandsLeft, 1); // what it was changed to last
});
