/** What is measured: something that listens on a port and leads to the sink, in processes whose CPU time can be read. */
import { fork, spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { cpuSecondsOf } from "../test/support/cpu-seconds.ts";
import { startCore } from "../test/support/start-core.ts";
import type { Handshake } from "./subject-address.ts";

export interface Subject extends AsyncDisposable {
  readonly name: string;
  readonly port: number;
  /** Where it is asked by these handshakes, those that it speaks. */
  readonly asked: { readonly [by in Handshake]?: number };
  /** Null: no process of its own stands between load and sink. */
  readonly pid: number | null;
}

/** A TypeScript file of this folder as a child. `prefix` comes before the command, such as `ip netns exec name`. */
export function forkPeer(
  file: string,
  args: readonly string[] = [],
  prefix: readonly string[] = [],
): ChildProcess {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const [execPath, ...before] = [...prefix, process.execPath];
  const execArgv = [...before, "--disable-warning=ExperimentalWarning"];
  return fork(path, args, { execPath: execPath as string, execArgv });
}

/** The same of one that says by its first message at which port it listens. */
export async function forkServer(
  ...how: Parameters<typeof forkPeer>
): Promise<{ child: ChildProcess; port: number }> {
  const child = forkPeer(...how);
  const [port] = (await once(child, "message")) as [number];
  return { child, port };
}

export async function endOf(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}

export function noProxy(sinkPort: number): Promise<Subject> {
  const [name, port] = ["no proxy", sinkPort];
  return Promise.resolve({ name, port, asked: {}, pid: null, async [Symbol.asyncDispose]() {} });
}

export interface WeirOptions {
  readonly name?: string;
  readonly relay?: "auto" | "portable";
  /** Further lines of the configuration. */
  readonly more?: string;
  /** Lines of rules, in front of the last. */
  readonly rules?: string;
  readonly seed?: (home: string) => void;
  /** Before the command, such as `taskset -c 0`. */
  readonly prefix?: readonly string[];
}

/** The program itself, with a listener that leads to the sink and one that is asked; like the others it writes no line a connection. */
export async function startWeir(
  sinkPort: number,
  { name = "weir", relay = "auto", more = "", rules = "", ...start }: WeirOptions = {},
): Promise<Subject> {
  const core = await startCore(
    `
relay: ${relay}
${more}external-controller: 127.0.0.1:0
listeners:
  - { name: bench, type: tunnel, listen: 127.0.0.1, port: 0, network: [tcp], target: "127.0.0.1:${sinkPort}" }
  - { name: asked, type: mixed, listen: 127.0.0.1, port: 0 }
rules:
${rules}  - MATCH,DIRECT
`,
    start,
  );
  await quieten(await core.controllerPort());
  const port = await core.port("bench");
  const mixed = await core.port("asked");
  const asked = { socks: mixed, connect: mixed };
  return { name, port, asked, pid: core.pid, [Symbol.asyncDispose]: () => core[Symbol.asyncDispose]() };
}

/** No line a connection from now on. */
async function quieten(controllerPort: number): Promise<void> {
  const body = JSON.stringify({ "log-level": "warning" });
  const answer = await fetch(`http://127.0.0.1:${controllerPort}/configs`, { method: "PATCH", body });
  if (!answer.ok) throw new Error(`the program does not take another log-level: ${answer.status}`);
}

export const weir = (sinkPort: number): Promise<Subject> => startWeir(sinkPort);
export const weirPortable = (sinkPort: number): Promise<Subject> =>
  startWeir(sinkPort, { name: "weir portable", relay: "portable" });

export async function barePipe(sinkPort: number): Promise<Subject> {
  const { child, port } = await forkServer("./relay-pipe.ts", [`${sinkPort}`]);
  const pid = child.pid as number;
  return { name: "bare pipe", port, asked: {}, pid, [Symbol.asyncDispose]: () => endOf(child) };
}

/** TCP mode as a distribution installs it. Null where it is not on the PATH. */
export async function haproxy(sinkPort: number, prefix: readonly string[] = []): Promise<Subject | null> {
  if (spawnSync("haproxy", ["-v"]).status !== 0) return null;
  const port = await freePort();
  const text = haproxyConfig(port, sinkPort);
  return startOther("HAProxy", text, (file) => [...prefix, "haproxy", "-db", "-f", file], {
    port,
    asked: {},
  });
}

type Starter = (sinkPort: number, prefix?: readonly string[]) => Promise<Subject | null>;

/** As a distribution installs it. Null where it is not on the PATH. */
export const v2ray: Starter = rayProgram("v2ray", ["-version"], ["-config"]);
export const xray: Starter = rayProgram("xray", ["version"], ["run", "-config"]);

function rayProgram(name: string, version: readonly string[], run: readonly string[]): Starter {
  return async (sinkPort, prefix = []) => {
    if (spawnSync(name, version).error !== undefined) return null;
    const [port, socks, connectPort] = [await freePort(), await freePort(), await freePort()];
    const listen = "127.0.0.1";
    const text = JSON.stringify({
      log: { loglevel: "warning" },
      inbounds: [
        {
          listen,
          port,
          protocol: "dokodemo-door",
          settings: { address: listen, port: sinkPort, network: "tcp" },
        },
        { listen, port: socks, protocol: "socks", settings: { auth: "noauth", udp: true, ip: listen } },
        { listen, port: connectPort, protocol: "http" },
      ],
      // Otherwise it keeps a connection for seconds after one side has ended, and the load waits for its end.
      policy: { levels: { 0: { uplinkOnly: 0, downlinkOnly: 0 } } },
      outbounds: [{ protocol: "freedom" }],
    });
    return startOther(name, text, (file) => [...prefix, name, ...run, file], {
      port,
      asked: { socks, connect: connectPort },
    });
  };
}

export async function singBox(sinkPort: number, prefix: readonly string[] = []): Promise<Subject | null> {
  if (spawnSync("sing-box", ["version"]).error !== undefined) return null;
  const [port, socks, connectPort] = [await freePort(), await freePort(), await freePort()];
  const listen = "127.0.0.1";
  const inbounds = [
    {
      type: "direct",
      listen,
      listen_port: port,
      network: "tcp",
      override_address: listen,
      override_port: sinkPort,
    },
    { type: "socks", listen, listen_port: socks },
    { type: "http", listen, listen_port: connectPort },
  ];
  const text = JSON.stringify({ log: { level: "warn" }, inbounds, outbounds: [{ type: "direct" }] });
  return startOther("sing-box", text, (file) => [...prefix, "sing-box", "run", "-c", file], {
    port,
    asked: { socks, connect: connectPort },
  });
}

export async function mihomo(sinkPort: number, prefix: readonly string[] = []): Promise<Subject | null> {
  if (spawnSync("mihomo", ["-v"]).error !== undefined) return null;
  const [port, mixed] = [await freePort(), await freePort()];
  const listen = "127.0.0.1";
  const text = JSON.stringify({
    "log-level": "warning",
    ipv6: false,
    listeners: [
      { name: "bench", type: "tunnel", listen, port, network: ["tcp"], target: `${listen}:${sinkPort}` },
      { name: "asked", type: "mixed", listen, port: mixed, users: [] },
    ],
    rules: ["MATCH,DIRECT"],
  });
  return startOther("mihomo", text, (file) => [...prefix, "mihomo", "-d", dirname(file), "-f", file], {
    port,
    asked: { socks: mixed, connect: mixed },
  });
}

async function startOther(
  name: string,
  configText: string,
  command: (file: string) => readonly string[],
  ports: Pick<Subject, "port" | "asked">,
): Promise<Subject> {
  const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
  const file = join(folder, "config.json");
  writeFileSync(file, configText);
  const [program, ...args] = command(file);
  const child = spawn(program as string, args, { stdio: "ignore" });
  await listening(ports.port);
  return {
    name,
    ...ports,
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

export async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
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

/** CPU time of one thread, in seconds; absent: of the main thread (sched-stats: the first number is ns). */
export function threadSeconds(pid: number, thread = pid): number {
  return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1e9;
}

/** CPU time of a process with all its threads, in seconds. */
export const cpuSeconds = (pid: number | null): number => (pid === null ? 0 : cpuSecondsOf(pid));

export function residentBytes(pid: number | null): number {
  if (pid === null) return 0;
  const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1024;
}
