/** A client and a server of one protocol in processes of their own, and what the load through them costs. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Cell, CELLS } from "../test/support/interop/cells.ts";
import type { Launch, Speaker } from "../test/support/interop/speaker.ts";
import { freePort } from "../test/support/peer.ts";
import type { ProtocolResult, ProtocolTask } from "./protocols-peer.ts";
import { cpuSeconds, endOf, listening } from "./relay-subjects.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

export interface Side {
  readonly name: string;
  readonly speaker: Speaker;
  readonly cell: string;
  /** Of weir: another checkout. */
  readonly root?: string;
  /** Port of the site that a server with REALITY stands for. */
  readonly dest?: number;
}

export const side = (name: string, speaker: Speaker, cell: string): Side => ({ name, speaker, cell });

export interface Chain extends AsyncDisposable {
  /** Of the server. */
  readonly port: number;
  readonly socksPort: number;
  readonly pids: readonly number[];
}

export async function startChain({ speaker, cell: name, root: from, dest = 0 }: Side): Promise<Chain> {
  const found = CELLS.find((one) => one.name === name) as Cell;
  const cell = found.reality === null ? found : { ...found, reality: { ...found.reality, dest } };
  const [port, socksPort] = [await freePort(), await freePort()];
  await using undo = new AsyncDisposableStack();
  const server = undo.use(await startProgram(speaker.server(cell, port) as Launch, port, from));
  const client = undo.use(
    await startProgram(speaker.client(cell, socksPort, port) as Launch, socksPort, from),
  );
  const opened = undo.move();
  const pids = [server.pid, client.pid];
  return { port, socksPort, pids, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

export interface Program extends AsyncDisposable {
  readonly pid: number;
}

/** Until it listens on the port of the loopback. `from`: the checkout, where it is weir. */
export async function startProgram(
  { command, files }: Launch,
  port: number,
  from: string = root,
): Promise<Program> {
  await using undo = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
  undo.defer(() => rmSync(folder, { recursive: true }));
  const filled = (text: string): string => text.replaceAll("{}/", `${folder}/`);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), filled(text));
  const child = start(command.map(filled), from);
  // Killed, ss-server would leave its plugin behind.
  undo.defer(() => endOf(child, command[0] === "ss-server" ? "SIGTERM" : "SIGKILL"));
  await listening(port);
  const opened = undo.move();
  return { pid: child.pid as number, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Weir as it is run from a checkout, in a process whose CPU time is its own. */
function start([program, ...args]: readonly string[], from: string): ChildProcess {
  if (program !== "weir") return spawn(program as string, args, { stdio: "ignore" });
  const config = args[args.indexOf("-f") + 1] as string;
  const own = ["--disable-warning=ExperimentalWarning", ...(process.env["BENCH_FLAGS"]?.split(" ") ?? [])];
  return spawn(
    process.execPath,
    [...own, join(from, "src", "boot.mjs"), "-d", dirname(config), "-f", config],
    {
      stdio: "ignore",
    },
  );
}

export interface Measured {
  /** Of the unit the table names, a second. */
  readonly rate: number;
  readonly cpuPerUnit: number;
  readonly serverCpuPerUnit: number;
}

export async function measure(
  load: ChildProcess,
  chain: Chain,
  task: ProtocolTask,
  unit: number,
): Promise<Measured> {
  const cpu = (): readonly number[] => chain.pids.map((pid) => cpuSeconds(pid));
  const before = cpu();
  load.send(task);
  const [{ amount, seconds }] = (await once(load, "message")) as [ProtocolResult];
  const spent = cpu().map((now, index) => now - (before[index] as number));
  // The CPU time of bulk covers what came before the count, too: the same share for everyone.
  const units = (amount / unit) * (task.what === "bulk" ? (seconds + 0.3) / seconds : 1);
  const total = spent.reduce((sum, one) => sum + one, 0);
  return {
    rate: amount / unit / seconds,
    cpuPerUnit: total / units,
    serverCpuPerUnit: (spent[0] as number) / units,
  };
}

export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
