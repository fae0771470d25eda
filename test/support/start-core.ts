/** Starts the real program in a process of its own and waits until it serves. */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export interface Core extends AsyncDisposable {
  readonly pid: number;
  /** The home directory; `config.yaml` in it is the file in use. */
  readonly home: string;
  /** Everything printed so far, both streams. */
  output(): string;
  /** Resolves with the match once the output shows it, from a place in it on; fails when the program ends, or in the end. */
  shows(pattern: RegExp, from?: number): Promise<RegExpExecArray>;
  /** Writes the configuration file. */
  write(configText: string): void;
  /** Has the file read again, with this text in it or as it is, and waits until it says the outcome. */
  reload(configText?: string | null, outcome?: RegExp): Promise<void>;
  /** Port of a listener, as the start-up log says it. */
  port(listener: string): Promise<number>;
  /** The same of the Controller's plain listener. */
  controllerPort(): Promise<number>;
  /** Ends it with a signal and answers with its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  readonly exited: Promise<number | null>;
}

export interface StartOptions {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Puts files into the home directory before the start. */
  readonly seed?: (home: string) => void;
  /** Put before the command, such as `taskset -c 0` or `ip netns exec name`. */
  readonly prefix?: readonly string[];
  /** The program; the checkout's own by default. */
  readonly program?: string;
  /** How long `shows` waits; only there to end a test that fails. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 60_000;
const READY = /msg="weir .* is running/;

export async function startCore(configText: string, options: StartOptions = {}): Promise<Core> {
  const home = mkdtempSync(join(tmpdir(), "weir-core-"));
  writeFileSync(join(home, "config.yaml"), configText);
  options.seed?.(home);
  const core = launch(home, options);
  try {
    await core.shows(READY);
  } catch (error) {
    await core[Symbol.asyncDispose]();
    throw error;
  }
  return core;
}

function launch(home: string, options: StartOptions): Core {
  const { args = [], env = {}, prefix = [], program, timeoutMs = TIMEOUT_MS } = options;
  const command = [...prefix, program ?? join(root, "bin", "weir"), "-d", home, ...args];
  const child: ChildProcessByStdio<null, Readable, Readable> = spawn(command[0] as string, command.slice(1), {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, SKIP_SAFE_PATH_CHECK: "", ...env },
  });
  let printed = "";
  const watchers = new Set<() => void>();
  const onText = (text: string): void => {
    printed += text;
    for (const watch of watchers) watch();
  };
  child.stdout.setEncoding("utf8").on("data", onText);
  child.stderr.setEncoding("utf8").on("data", onText);
  const exited = once(child, "close").then(([code]) => code as number | null);

  const shows = (pattern: RegExp, from = 0): Promise<RegExpExecArray> => {
    const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>();
    const fail = (why: string): void =>
      reject(new Error(`${why} before ${pattern} was shown; output:\n${printed.slice(from)}`));
    const timer = setTimeout(() => fail(`${timeoutMs} ms passed`), timeoutMs);
    const look = (): void => {
      const match = pattern.exec(printed.slice(from));
      if (match !== null) resolve(match);
    };
    watchers.add(look);
    void exited.then((code) => fail(`exit code ${code}`));
    look();
    return promise.finally(() => {
      clearTimeout(timer);
      watchers.delete(look);
    });
  };
  const stop = (signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> => {
    if (child.exitCode === null) child.kill(signal);
    return exited;
  };
  const write = (text: string): void => writeFileSync(join(home, "config.yaml"), text);
  return {
    pid: child.pid as number,
    home,
    exited,
    shows,
    stop,
    output: () => printed,
    write,
    async reload(text = null, outcome = /configuration reloaded/) {
      const before = printed.length;
      if (text !== null) write(text);
      child.kill("SIGHUP");
      await shows(outcome, before);
    },
    async port(listener) {
      const name = listener.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
      return Number((await shows(new RegExp(`${name} listening at \\S*?:(\\d+)`)))[1]);
    },
    controllerPort: async () => Number((await shows(/controller: http on \S*:(\d+)/))[1]),
    async [Symbol.asyncDispose]() {
      await stop("SIGKILL");
      rmSync(home, { recursive: true, force: true });
    },
  };
}
