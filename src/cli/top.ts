import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError, messageOf } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { addressOf } from "./controller-address.ts";
import { askController, type ControllerAddress } from "./controller-request.ts";
import { parseFlags, usageText, UsageError, type FlagTable } from "./flags.ts";
import { linesOf as messages, setUp } from "./load.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";
import { readSample, type Sample } from "./top/sample.ts";
import { HELP, linesOf, VIEWS, type View } from "./top/screen.ts";
import { Terminal } from "./top/terminal.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  every: { kind: "text", value: "SECONDS", help: "time between two looks, 0.5 to 3600; absent: 2" },
  n: { kind: "text", value: "COUNT", help: "end after so many looks; absent: go on, off a terminal one" },
  view: { kind: "text", value: "NAME", help: `${VIEWS.join(", ")}; absent: all` },
};

export const TOP_USAGE = usageText(
  `usage: weir top [flags]   connections, users, policies and their rates of the weir that runs with the configuration

On a terminal: q quits, tab goes to the next view, space pauses. NO_COLOR is heeded; off a terminal, and where TERM is
dumb, the looks are plain text below each other.
`,
  FLAGS,
);

const DEFAULT_SECONDS = "2";
const LEAST_EVERY_MS = 500;
const MOST_EVERY_MS = 3_600_000;
const MOST_LOOKS = 1_000_000;
const PLAIN_ROWS = 40;
const PLAIN_COLUMNS = 80;

interface Plan {
  readonly address: ControllerAddress;
  readonly title: string;
  readonly everyMs: number;
  /** Null: without end. */
  readonly looks: number | null;
  readonly view: View;
}

/** `weir top`: 0 at its end, 1 where the weir that runs cannot be asked. */
export async function topCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  if (flags.rest.length > 0) throw new UsageError(TOP_USAGE);
  const given = flags.text("every") ?? DEFAULT_SECONDS;
  const everyMs = Number(given) * 1000;
  if (!(everyMs >= LEAST_EVERY_MS && everyMs <= MOST_EVERY_MS))
    throw new UsageError(`top: -every takes seconds from 0.5 to 3600, not ${given}`);
  const view = VIEWS.find((one) => one === (flags.text("view") ?? "all"));
  if (view === undefined) throw new UsageError(`top: -view takes one of ${VIEWS.join(", ")}`);
  const count = flags.text("n");
  const looks = count === null ? null : Number(count);
  if (looks !== null && !(Number.isInteger(looks) && looks > 0 && looks <= MOST_LOOKS))
    throw new UsageError(`top: -n takes a number from 1 on, not ${count}`);
  const setup = setUp(flags, env, SILENT);
  const { file, result } = setup.first();
  if (result.errors !== undefined) throw new ConfigError(messages(file, result.errors).join("\n"));
  const address = addressOf(result.config, setup.home, result.config.controller.secret, "top");
  const title = "socketPath" in address ? address.socketPath : `${address.host}:${address.port}`;
  const plan = { address, title, everyMs, looks, view };
  const isLive = process.stdout.isTTY && env["TERM"] !== "dumb";
  await (isLive ? live(plan, env) : plain(plan));
  return 0;
}

async function look(address: ControllerAddress, before: Sample | null): Promise<Sample> {
  const asked = askController(address, "GET", "/api/svc/traffic-control/status").catch(() => "null"); // it may be off
  const [connections, status] = await Promise.all([askController(address, "GET", "/connections"), asked]);
  return readSample(
    { connections: JSON.parse(connections), status: JSON.parse(status) },
    before,
    performance.timeOrigin + performance.now(),
  );
}

/** Two looks make a rate, so one that is asked for has another before it. */
async function plain({ address, title, everyMs, looks, view }: Plan): Promise<void> {
  const isTerminal = process.stdout.isTTY;
  const wanted = looks ?? (isTerminal ? Infinity : 1);
  let before = await look(address, null);
  for (let at = 0; at < wanted; at++) {
    await sleep(everyMs);
    before = await look(address, before);
    const columns = process.stdout.columns || PLAIN_COLUMNS;
    const screen = { columns, rows: PLAIN_ROWS, view, isPaused: false, title };
    const lines = linesOf(before, screen).map(({ text }) => text.trimEnd());
    if (!process.stdout.write(`${lines.join("\n")}\n\n`)) await drained();
  }
}

function drained(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.stdout.once("drain", resolve);
  process.stdout.once("close", resolve);
  return promise;
}

async function live(
  { address, title, everyMs, looks, view: first }: Plan,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const ended = new AbortController();
  const end = (): void => ended.abort("ended");
  let [view, isPaused, fault]: [View, boolean, string] = [first, false, ""];
  let sample: Sample | null = null;
  const onKey = (key: string): void => {
    if (key === "q" || key === "\u0003") end();
    else if (key === "\t") view = VIEWS[(VIEWS.indexOf(view) + 1) % VIEWS.length] ?? first;
    else if (key === " ") isPaused = !isPaused;
    else return;
    draw();
  };
  using terminal = new Terminal({
    output: process.stdout,
    input: process.stdin,
    hasColour: !env["NO_COLOR"],
    onKey,
    onResize: () => draw(),
  });
  function draw(): void {
    if (sample === null || ended.signal.aborted) return;
    const { columns, rows } = terminal;
    const screen = { columns, rows: rows - 1, view, isPaused, title };
    terminal.draw(linesOf(sample, screen), (fault || HELP).slice(0, columns));
  }
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.once(signal, end);
  try {
    sample = await look(address, null); // where nothing answers there is nothing to show
    for (let at = 0; (looks === null || at < looks) && !ended.signal.aborted; at++) {
      await sleep(everyMs, undefined, { signal: ended.signal }).catch(() => {});
      if (ended.signal.aborted) break;
      if (!isPaused)
        try {
          sample = await look(address, sample);
          fault = "";
        } catch (error) {
          fault = messageOf(error); // it restarts, perhaps
        }
      draw();
    }
  } finally {
    for (const signal of signals) process.off(signal, end);
  }
}
