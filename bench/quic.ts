/**
 * QUIC: what a GiB costs each side. Two processes of ours over loopback, then hysteria2: our client before our server and
 * before sing-box's, and sing-box's before its own, in turn. All share the machine: ratios say more than absolute figures.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { makeCertificate } from "../test/support/certificate.ts";
import { freePort, missing } from "../test/support/peer.ts";
import type { Kind, ProtocolResult, ProtocolTask } from "./protocols-peer.ts";
import type { QuicKind, QuicTask } from "./quic-peer.ts";
import { cpuSeconds, endOf, forkPeer, forkServer, listening } from "./relay-subjects.ts";

export const NAME = "quic";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
const MOVE_MS = Number(process.env["BENCH_MS"] ?? 3_000);
const WARM_MS = MOVE_MS / 2;

const GIB = 2 ** 30;
const KINDS = ["D", "U"] as const;
/** The program to compare with; it knows no other place than the PATH otherwise. */
const SING_BOX = process.env["SING_BOX"] ?? "sing-box";
const PASSWORD = "bench";
const HOST = "127.0.0.1";
const START_MS = 3_000;
/** The load warms itself up for so long. */
const UNCOUNTED_SECONDS = 0.3;
const FLAGS = process.env["BENCH_FLAGS"]?.split(" ") ?? [];
const WAYS = { D: "down", U: "up" } as const;

const root = dirname(dirname(fileURLToPath(import.meta.url)));

interface Measured {
  readonly gbit: number;
  /** CPU seconds a GiB, of the dialling side and of the accepting one. */
  readonly client: number;
  readonly server: number;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Without the warm-up: CPU time is read when it is over. */
async function bare(kind: QuicKind): Promise<Measured> {
  const server = forkPeer("./quic-peer.ts", ["server"]);
  const client = forkPeer("./quic-peer.ts", ["client"]);
  try {
    const [{ port, fingerprint }] = (await once(server, "message")) as [QuicTask];
    client.send({ port, fingerprint, kind, warmMs: WARM_MS, ms: MOVE_MS } satisfies QuicTask);
    await once(client, "message");
    const before = [cpuSeconds(client.pid ?? null), cpuSeconds(server.pid ?? null)] as const;
    const [{ amount, seconds }] = (await once(client, "message")) as [ProtocolResult];
    return {
      gbit: (amount * 8) / seconds / 1e9,
      client: ((cpuSeconds(client.pid ?? null) - before[0]) * GIB) / amount,
      server: ((cpuSeconds(server.pid ?? null) - before[1]) * GIB) / amount,
    };
  } finally {
    await endOf(client);
    await endOf(server);
  }
}

/** A program of one side of hysteria2, and the port at which it is dialled. */
interface Side extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
}

/** `{}` in the command and in the files is a folder that holds the files. */
async function start(
  port: number,
  command: readonly string[],
  files: Readonly<Record<string, string>>,
): Promise<Side> {
  const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
  const filled = (text: string): string => text.replaceAll("{}", folder);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), filled(text));
  const [program = "", ...args] = command.map(filled);
  const child = spawn(program, args, { stdio: "ignore" });
  await once(child, "spawn");
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program} does not start`);
  return {
    pid,
    port,
    async [Symbol.asyncDispose]() {
      await endOf(child);
      rmSync(folder, { recursive: true });
    },
  };
}

const singBox = (port: number, config: object, files: Readonly<Record<string, string>> = {}): Promise<Side> =>
  start(port, [SING_BOX, "run", "-c", "{}/config.json"], { ...files, "config.json": JSON.stringify(config) });

async function singBoxServer(): Promise<Side> {
  const port = await freePort();
  const { cert, key } = makeCertificate({ names: ["server.test"] });
  const tls = { enabled: true, alpn: ["h3"], certificate_path: "{}/cert", key_path: "{}/key" };
  const users = [{ password: PASSWORD }];
  const inbound = { type: "hysteria2", listen: HOST, listen_port: port, users, tls };
  const config = { log: { disabled: true }, inbounds: [inbound], outbounds: [{ type: "direct" }] };
  const side = await singBox(port, config, { cert, key });
  await delay(START_MS); // nothing tells when a UDP port is served
  return side;
}

async function weirServer(): Promise<Side> {
  const port = await freePort();
  const { cert, key } = makeCertificate({ names: ["server.test"] });
  const config = `
log-level: warning
listeners:
  - { name: in, type: hysteria2, listen: ${HOST}, port: ${port}, users: { bench: ${PASSWORD} }, certificate: ./cert, private-key: ./key }
rules:
  - MATCH,DIRECT
`;
  const side = await weir(port, config, { cert, key });
  await delay(START_MS);
  return side;
}

const weir = (port: number, config: string, files: Readonly<Record<string, string>> = {}): Promise<Side> => {
  const boot = join(root, "src", "boot.mjs");
  const command = [process.execPath, "--disable-warning=ExperimentalWarning", ...FLAGS, boot];
  const place = ["-d", "{}", "-f", "{}/config.yaml"];
  return start(port, [...command, ...place], { ...files, "config.yaml": config });
};

async function singBoxClient(server: number): Promise<Side> {
  const port = await freePort();
  const tls = { enabled: true, alpn: ["h3"], server_name: "server.test", insecure: true };
  const side = await singBox(port, {
    log: { disabled: true },
    inbounds: [{ type: "socks", listen: HOST, listen_port: port }],
    outbounds: [{ type: "hysteria2", server: HOST, server_port: server, password: PASSWORD, tls }],
  });
  await listening(port);
  return side;
}

async function weirClient(server: number): Promise<Side> {
  const port = await freePort();
  const config = `
mixed-port: ${port}
log-level: warning
proxies:
  - { name: node, type: hysteria2, server: ${HOST}, port: ${server}, password: ${PASSWORD}, sni: server.test, skip-cert-verify: true }
rules:
  - MATCH,node
`;
  const side = await weir(port, config);
  await listening(port);
  return side;
}

async function relayed(
  load: ChildProcess,
  { kind, sinkPort }: { readonly kind: Kind; readonly sinkPort: number },
  client: Side,
  server: Side,
): Promise<Measured> {
  const task = { what: "bulk", kind, streams: 1, socksPort: client.port, sinkPort } as const;
  const moveFor = async (ms: number): Promise<ProtocolResult> => {
    load.send({ ...task, ms } satisfies ProtocolTask);
    const [result] = (await once(load, "message")) as [ProtocolResult];
    return result;
  };
  await moveFor(WARM_MS);
  const before = [cpuSeconds(client.pid), cpuSeconds(server.pid)] as const;
  const { amount, seconds } = await moveFor(MOVE_MS);
  // The load does not count its first bytes; the CPU time of the programs holds what they cost.
  const moved = (amount * (seconds + UNCOUNTED_SECONDS)) / seconds;
  return {
    gbit: (amount * 8) / seconds / 1e9,
    client: ((cpuSeconds(client.pid) - before[0]) * GIB) / moved,
    server: ((cpuSeconds(server.pid) - before[1]) * GIB) / moved,
  };
}

function show(out: (line: string) => void, title: string, all: readonly Measured[]): void {
  const middle = (of: (one: Measured) => number): string => median(all.map(of)).toFixed(2);
  const load = (loadavg()[0] ?? 0).toFixed(1);
  out(
    `| ${title} | ${middle((one) => one.gbit)} | ${middle((one) => one.client)} | ${middle((one) => one.server)} | ${load} |`,
  );
}

export async function run(
  out: (line: string) => void,
  only = process.env["BENCH_ONLY"] ?? "",
): Promise<void> {
  out("| | Gbit/s | client, CPU s/GiB | server, CPU s/GiB | load |\n|---|---|---|---|---|");
  for (const kind of KINDS) {
    const title = `transport alone, ${WAYS[kind]}`;
    if (!title.includes(only)) continue;
    const all: Measured[] = [];
    for (let round = 0; round < ROUNDS; round++) all.push(await bare(kind));
    show(out, title, all);
  }
  if (!"hysteria2".includes(only)) return;
  const absent = missing(SING_BOX);
  if (absent !== false) return out(absent);
  await hysteria2(out);
}

async function hysteria2(out: (line: string) => void): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const sink = await forkServer("./protocols-peer.ts", ["sink"]);
  undo.defer(() => endOf(sink.child));
  const load = forkPeer("./protocols-peer.ts", ["load"]);
  undo.defer(() => endOf(load));
  const [weirs, singBoxes] = [undo.use(await weirServer()), undo.use(await singBoxServer())];
  const pairs = [
    { title: "weir and weir", client: undo.use(await weirClient(weirs.port)), server: weirs },
    { title: "weir and sing-box", client: undo.use(await weirClient(singBoxes.port)), server: singBoxes },
    {
      title: "sing-box and sing-box",
      client: undo.use(await singBoxClient(singBoxes.port)),
      server: singBoxes,
    },
  ];
  for (const kind of KINDS) {
    const all = pairs.map((): Measured[] => []);
    for (let round = 0; round < ROUNDS; round++)
      for (const [index, { client, server }] of pairs.entries())
        all[index]?.push(await relayed(load, { kind, sinkPort: sink.port }, client, server));
    for (const [index, { title }] of pairs.entries())
      show(out, `hysteria2, ${title}, ${WAYS[kind]}`, all[index] ?? []);
  }
}
