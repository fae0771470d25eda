/** What is measured: something that listens on a port and leads to the sink, in processes whose CPU time can be read. */
import { fork, spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startCore } from "../test/support/start-core.ts";

export interface Subject extends AsyncDisposable {
  readonly name: string;
  readonly port: number;
  /** Null: no process of its own stands between load and sink. */
  readonly pid: number | null;
}

/** A TypeScript file of this folder as a child; its first message is the port. */
export async function forkPeer(
  file: string,
  args: readonly string[],
): Promise<{ child: ChildProcess; port: number }> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = fork(path, args, { execArgv: ["--disable-warning=ExperimentalWarning"] });
  const [port] = args[0] === "load" ? [0] : ((await once(child, "message")) as [number]);
  return { child, port };
}

export async function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

export function noProxy(sinkPort: number): Promise<Subject> {
  return Promise.resolve({ name: "no proxy", port: sinkPort, pid: null, async [Symbol.asyncDispose]() {} });
}

/** The program itself, with a listener that leads to the sink; it logs as it does by default. */
export async function weir(sinkPort: number): Promise<Subject> {
  const core = await startCore(`
listeners:
  - { name: bench, type: tunnel, listen: 127.0.0.1, port: 0, network: [tcp], target: "127.0.0.1:${sinkPort}" }
rules:
  - MATCH,DIRECT
`);
  const port = await core.port("bench");
  return { name: "weir", port, pid: core.pid, [Symbol.asyncDispose]: () => core[Symbol.asyncDispose]() };
}

/** The part of weir that relays, alone: no rules, no log. */
export async function relayAlone(sinkPort: number): Promise<Subject> {
  const { child, port } = await forkPeer("./relay-core.ts", [`${sinkPort}`]);
  const pid = child.pid as number;
  return { name: "weir's relay alone", port, pid, [Symbol.asyncDispose]: () => endOf(child) };
}

/** TCP mode as a distribution installs it. Null where it is not on the PATH. */
export async function haproxy(sinkPort: number): Promise<Subject | null> {
  if (spawnSync("haproxy", ["-v"]).status !== 0) return null;
  const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
  const port = await freePort();
  const file = join(folder, "haproxy.cfg");
  writeFileSync(file, haproxyConfig(port, sinkPort));
  const child = spawn("haproxy", ["-db", "-f", file], { stdio: "ignore" });
  await listening(port);
  return {
    name: "HAProxy",
    port,
    pid: child.pid as number,
    async [Symbol.asyncDispose]() {
      await endOf(child);
      rmSync(folder, { recursive: true });
    },
  };
}

function haproxyConfig(port: number, sinkPort: number): string {
  return `
global
  maxconn 9300
  maxpipes 100
defaults
  mode tcp
  option splice-auto
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen bench
  bind 127.0.0.1:${port}
  server sink 127.0.0.1:${sinkPort}
`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const socket = connect(port, "127.0.0.1");
    const up = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (up) return;
    await delay(50);
  }
  throw new Error(`nothing listens on port ${port}`);
}

/** USER_HZ of every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** CPU time of a process with all its threads, in seconds (proc(5): utime and stime are fields 14 and 15). */
export function cpuSeconds(pid: number | null): number {
  if (pid === null) return 0;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export function residentBytes(pid: number | null): number {
  if (pid === null) return 0;
  const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1024;
}
