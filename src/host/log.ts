import { constants, fstatSync, openSync } from "node:fs";
import { Socket } from "node:net";
import sonicBoom from "sonic-boom";
import type { Log, LogEvent, LogEventLevel, LogLevel, LogText } from "#core/log.ts";
import { LogRing } from "./log-ring.ts";

const WEIGHT: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warning: 2, error: 3, silent: 4 };

/** Where finished lines go. */
export interface LineSink {
  write(line: string): void;
  /** Hands everything to the kernel before the process ends. */
  flush(): void;
}

/**
 * Bytes that wait for a slow reader of stdout; beyond it whole lines are dropped and counted, so that logging never
 * blocks.
 */
const QUEUE_BYTES = 4 * 1024 * 1024;

/** As much goes out at once. */
const GATHER_CHARACTERS = 16 * 1024;
/**
 * Lines go out at the end of their turn. Where turn after turn has some, a call for each would cost more than all else
 * that is done for a short connection: after so many calls lines wait for each other, and every wait allows one more.
 */
const PROMPT_CALLS = 50;
const WAIT_MS = 10;

/** What the last lines get where the reader of stdout has stopped reading; then they are lost. */
const FLUSH_MS = 1_000;

/** A sink on a descriptor that never blocks the event loop, and the end of the program for a moment only. */
export function openDescriptorSink(fd: number): LineSink {
  let giveUpAtMs = Infinity;
  const out = new sonicBoom.SonicBoom({
    fd: withoutBlocking(fd),
    sync: false,
    maxLength: QUEUE_BYTES,
    retryEAGAIN: () => performance.now() < giveUpAtMs,
  });
  out.on("error", () => {
    // The reader of our output has closed it (EPIPE); the message has no other destination.
  });
  let dropped = 0;
  out.on("drop", () => void dropped++);
  out.on("drain", () => {
    if (dropped === 0) return;
    const lost = dropped;
    dropped = 0;
    out.write(
      formatLine({
        level: "warning",
        text: `${lost} log lines were dropped: the reader is too slow`,
        atMs: Date.now(),
      }),
    );
  });
  let gathered = "";
  let promptCalls = PROMPT_CALLS;
  let handedAtMs = 0;
  let atTurnsEnd: NodeJS.Immediate | undefined;
  let later: NodeJS.Timeout | undefined;
  const hand = (): void => {
    clearImmediate(atTurnsEnd);
    clearTimeout(later);
    atTurnsEnd = later = undefined;
    const nowMs = performance.now();
    promptCalls = Math.min(PROMPT_CALLS, promptCalls + (nowMs - handedAtMs) / WAIT_MS) - 1;
    handedAtMs = nowMs;
    const text = gathered;
    gathered = "";
    if (text !== "") out.write(text);
  };
  return {
    write(line) {
      const isFirst = gathered === "";
      gathered += line;
      if (gathered.length >= GATHER_CHARACTERS) hand();
      else if (isFirst && promptCalls >= 0) atTurnsEnd = setImmediate(hand);
      else if (isFirst) later = setTimeout(hand, WAIT_MS);
    },
    flush() {
      hand();
      giveUpAtMs = performance.now() + FLUSH_MS; // and no later try, which would keep the process alive
      try {
        out.flushSync();
      } catch {
        // A pipe that is closed or full: the lines have nowhere to go.
      }
    },
  };
}

/**
 * A write to a pipe that is not read blocks its thread, and a process cannot exit while a thread blocks so. A pipe that
 * is opened again has a mode of its own, so other users of the descriptor keep theirs; a socket cannot be opened again,
 * and gets the non-blocking mode that every stream of the runtime has.
 */
function withoutBlocking(fd: number): number {
  try {
    const stat = process.platform === "linux" ? fstatSync(fd) : null;
    if (stat?.isFIFO() === true)
      return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
    if (stat?.isSocket() === true) new Socket({ fd, readable: false }).on("error", () => {}).unref();
  } catch {
    // Closed, or owned by another user: its mode stays.
  }
  return fd;
}

/** The line format that front ends of the ecosystem match on: `time="…" level=… msg="…"`. */
export function formatLine({
  level,
  text,
  atMs,
}: {
  level: LogEventLevel | "fatal";
  text: string;
  atMs: number;
}): string {
  return `time="${new Date(atMs).toISOString()}" level=${level} msg=${JSON.stringify(text)}\n`;
}

/**
 * The program's log. A text is made only where the level or a subscriber asks for it; subscribers get every event
 * that reaches their own level, whatever the level of the output is.
 */
export class LogHub implements Log {
  level: LogLevel;
  readonly #sink: LineSink;
  readonly #subscribers = new Set<{ readonly level: LogLevel; readonly on: (event: LogEvent) => void }>();
  readonly #printed = new LogRing();
  #listening: number;

  constructor(level: LogLevel, sink: LineSink) {
    this.level = level;
    this.#sink = sink;
    this.#listening = WEIGHT.silent;
  }

  debug(text: LogText): void {
    this.#publish("debug", text);
  }
  info(text: LogText): void {
    this.#publish("info", text);
  }
  warning(text: LogText): void {
    this.#publish("warning", text);
  }
  error(text: LogText): void {
    this.#publish("error", text);
  }

  /** `on` must not throw and must not wait: a subscriber with a slow peer drops its own records. */
  subscribe(level: LogLevel, on: (event: LogEvent) => void): Disposable {
    const subscriber = { level, on };
    this.#subscribers.add(subscriber);
    this.#countListeners();
    return {
      [Symbol.dispose]: () => {
        this.#subscribers.delete(subscriber);
        this.#countListeners();
      },
    };
  }

  /** The newest `count` of the printed lines at `level` or above, the oldest of them first; some may be gone. */
  recent(level: LogLevel, count: number): readonly LogEvent[] {
    return this.#printed.last(count, (event) => WEIGHT[event.level] >= WEIGHT[level]);
  }

  flush(): void {
    this.#sink.flush();
  }

  #countListeners(): void {
    this.#listening = Math.min(WEIGHT.silent, ...[...this.#subscribers].map(({ level }) => WEIGHT[level]));
  }

  #publish(level: LogEventLevel, text: LogText): void {
    const weight = WEIGHT[level];
    const printed = weight >= WEIGHT[this.level];
    if (!printed && weight < this.#listening) return;
    const event: LogEvent = { level, text: typeof text === "string" ? text : text(), atMs: Date.now() };
    if (printed) {
      this.#sink.write(formatLine(event));
      this.#printed.push(event);
    }
    for (const subscriber of this.#subscribers) if (weight >= WEIGHT[subscriber.level]) subscriber.on(event);
  }
}
