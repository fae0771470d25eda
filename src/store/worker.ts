/**
 * The program of a store's threads. The first has the lock and the backup, and does what it is sent in the order of its
 * coming; the second has the primary and does what the first says.
 */
import { parentPort, workerData } from "node:worker_threads";
import type { LogEventLevel, LogText } from "#core/log.ts";
import { messageOf } from "#core/errors.ts";
import { itemAt } from "#lib/at.ts";
import { Store } from "./backup.ts";
import { UndecidedError } from "./cut-log.ts";
import type { Change } from "./kv.ts";
import { serveLink } from "./second-file.ts";
import {
  failureOf,
  type SecondThreadData,
  type StoreReply,
  type StoreRequest,
  type StoreThreadData,
} from "./thread-messages.ts";

/** Time without a request before the logs are checkpointed: rarely in the way of a change. */
const QUIET_MS = 100;
/** Fewer commits are not worth it, even then. */
const WORTH_FOLDING = 50;
/** With so many it is done behind an answer although others may wait: it takes some milliseconds, and the log stays short. */
const DUE_FOLDING = 250;

if (parentPort === null) throw new Error("the program of a store's thread needs a parent thread");
const port = parentPort;
const data: StoreThreadData | SecondThreadData = workerData;
const { path } = data;
let nowMs = 0;
let isOver = false;

const say = (reply: StoreReply): void => port.postMessage(reply);
const writer = (level: LogEventLevel) => (text: LogText) =>
  say({ kind: "log", level, text: typeof text === "string" ? text : text() });
const log = {
  debug: writer("debug"),
  info: writer("info"),
  warning: writer("warning"),
  error: writer("error"),
};

const events = { healed: (file: string) => say({ kind: "healed", file }) };

if (data.role === "second") serveLink(data.link, path, data.parts);
else {
  ({ nowMs } = data);
  const store = open(data);
  if (store !== null) serve(store, data);
}

function open({ link, parts, isMarked }: StoreThreadData): Store | null {
  using undo = new DisposableStack();
  try {
    const opened = undo.use(Store.open({ path, parts, isMarked, nowMs: () => nowMs, log, events }));
    const records = parts.map((part) => [part, [...opened.entries(part)]] as const);
    opened.writeAtOnce(link);
    say({ kind: "opened", records: new Map(records) });
    undo.move();
    return opened;
  } catch (error) {
    say({ kind: "done", failure: failureOf(error) });
    port.close();
    return null;
  }
}

function serve(opened: Store, { end }: StoreThreadData): void {
  let waiting: StoreRequest[] = [];
  let soon: NodeJS.Immediate | null = null;
  const folding = setTimeout(() => fold(opened, WORTH_FOLDING), QUIET_MS).unref();
  const work = (): void => {
    soon = null;
    const requests = waiting;
    waiting = [];
    for (let at = 0; at < requests.length;) at += next(opened, requests.slice(at), end);
    fold(opened, DUE_FOLDING);
    folding.refresh();
  };
  port.on("message", (request: StoreRequest) => {
    waiting.push(request);
    soon ??= setImmediate(work); // whatever has come by then is written together
  });
}

/** How many requests were answered. */
function next(opened: Store, requests: readonly StoreRequest[], end: SharedArrayBuffer): number {
  const first = itemAt(requests, 0);
  if (first.kind === "commit") {
    const commits: Commit[] = [];
    for (const request of requests) {
      if (request.kind !== "commit") break;
      commits.push(request);
    }
    commitAll(opened, commits);
    return commits.length;
  }
  if (first.kind === "compact") answer(() => opened.compact());
  else if (first.kind === "snapshot")
    answer(() => {
      const records = data.parts.map((part) => [part, [...opened.present(part)]] as const);
      say({ kind: "snapshot", records: new Map(records) });
    });
  else close(opened, end);
  return 1;
}

type Commit = Extract<StoreRequest, { readonly kind: "commit" }>;

/** In one transaction; where that fails, in one each, because each has an answer of its own. */
function commitAll(opened: Store, commits: readonly Commit[]): void {
  nowMs = commits.at(-1)?.nowMs ?? nowMs;
  const isDone = commits.length > 1 && commitTogether(opened, commits);
  for (const one of commits) answer(() => (isDone ? undefined : opened.commit(one.changes, one)));
}

function commitTogether(opened: Store, commits: readonly Commit[]): boolean {
  try {
    const changes = commits.flatMap((one): readonly Change[] => one.changes);
    opened.commit(changes, { backup: commits.some(({ backup }) => backup) });
    return true;
  } catch (error) {
    if (error instanceof UndecidedError) throw error;
    return false; // whose fault it is shows when they are written one by one
  }
}

function fold(opened: Store, leastCommits: number): void {
  if (isOver) return; // the other end of the link is gone
  try {
    opened.checkpointWal(leastCommits);
  } catch (error) {
    log.warning(`${path}: its log stays as long as it is: ${messageOf(error)}`);
  }
}

function close(opened: Store, end: SharedArrayBuffer): void {
  isOver = true;
  answer(() => opened[Symbol.dispose]());
  Atomics.store(new Int32Array(end), 0, 1);
  Atomics.notify(new Int32Array(end), 0);
  port.close(); // nothing else keeps the thread alive
}

function answer(work: () => void): void {
  try {
    work();
    say({ kind: "done", failure: null });
  } catch (error) {
    if (error instanceof UndecidedError) throw error; // ends this thread: the next one finds out what is in force
    say({ kind: "done", failure: failureOf(error) });
  }
}
