/**
 * TLS in, plain out: a Trojan listener of weir beside v2ray's, and HAProxy in TCP mode with TLS, in one interleaved run;
 * then handshakes a second, and whole connections: handshake, request, dial, a byte there and back, close. For all the same
 * certificate (P-256), TLS 1.3, AES-128-GCM and X25519. Tickets are as each sends them: v2ray (if it
 * is told to) one, weir one with its first answer, node:tls and HAProxy two. HAProxy dials the sink behind each handshake, the others behind a request.
 *
 * Load and sink share the cores with what is measured. So that it is not they who are measured, they do no TLS while
 * the clock runs in bulk, and copy nothing: see `tls-peer.ts`. Each subject is first asked for some MiB both ways that are
 * opened and compared. In handshakes the load does its half, as every client has to: CPU time says more there.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { COMMAND_CONNECT, encodeRequest, keyOf } from "#protocols/trojan/wire.ts";
import { type Cell, CELLS, certificate, password } from "../test/support/interop/cells.ts";
import { weir } from "../test/support/interop/clash.ts";
import { v2ray } from "../test/support/interop/ray.ts";
import type { Launch, Speaker } from "../test/support/interop/speaker.ts";
import { freePort, missing } from "../test/support/peer.ts";
import { cpuSeconds, endOf, forkPeer, forkServer, listening } from "./relay-subjects.ts";
import type { TlsResult, TlsTask } from "./tls-peer.ts";

export const NAME = "tls";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
const BULK_MS = 1_500;
const HANDSHAKES_MS = 2_000;
const PARALLEL = 16;

const root = dirname(dirname(fileURLToPath(import.meta.url)));

interface Subject extends AsyncDisposable {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
  /** In front of what goes to the sink; hex. */
  readonly header: string;
}

async function start(
  name: string,
  port: number,
  header: string,
  { command, files }: Launch,
): Promise<Subject> {
  const folder = mkdtempSync(join(tmpdir(), "weir-bench-"));
  const filled = (text: string): string => text.replaceAll("{}/", `${folder}/`);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), filled(text));
  const [program, ...args] = command.map(filled);
  const own = ["--disable-warning=ExperimentalWarning", join(root, "src", "boot.mjs")];
  const child =
    program === "weir"
      ? spawn(process.execPath, [...own, "-d", folder, ...args.slice(args.indexOf("-f"))], {
          stdio: "ignore",
        })
      : spawn(program as string, args, { stdio: "ignore" });
  await listening(port);
  return {
    name,
    port,
    header,
    pid: child.pid as number,
    async [Symbol.asyncDispose]() {
      await endOf(child);
      rmSync(folder, { recursive: true });
    },
  };
}

async function trojan(
  name: string,
  speaker: Speaker,
  sinkPort: number,
  adapt: (config: string) => string = (config) => config,
): Promise<Subject> {
  const port = await freePort();
  const destination = { host: null, ip: LOOPBACK_V4, port: sinkPort };
  const header = encodeRequest(keyOf(password), { command: COMMAND_CONNECT, destination }).toString("hex");
  const cell = CELLS.find((one) => one.name === "trojan tls") as Cell;
  const launch = speaker.server(cell, port) as Launch;
  const files = Object.entries(launch.files).map(([file, text]) => [file, adapt(text)]);
  return start(name, port, header, { ...launch, files: Object.fromEntries(files) });
}

/** It is JSON, which is YAML. */
const portable = (config: string): string => config.replace("{", '{"relay":"portable",');

/** It sends none unless it is told to. */
const withTickets = (config: string): string =>
  config.replace('"tlsSettings":{', '"tlsSettings":{"enableSessionResumption":true,');

async function haproxy(sinkPort: number): Promise<Subject> {
  const port = await freePort();
  const config = `
global
  maxconn 2000
  ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen bench
  bind 127.0.0.1:${port} ssl crt {}/both.pem
  server sink 127.0.0.1:${sinkPort}
`;
  const files = { "haproxy.cfg": config, "both.pem": `${certificate.cert}\n${certificate.key}` };
  return start("HAProxy", port, "", { command: ["haproxy", "-db", "-f", "{}/haproxy.cfg"], files });
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function ask(load: ChildProcess, task: TlsTask): Promise<TlsResult> {
  load.send(task);
  return ((await once(load, "message")) as [TlsResult])[0];
}

interface Row {
  readonly rate: number;
  readonly cpu: number;
}

/** A task without the door. */
type Asked = TlsTask extends infer One ? (One extends TlsTask ? Omit<One, "port" | "header"> : never) : never;

/** With the subject's CPU seconds. */
async function spent(
  load: ChildProcess,
  subject: Subject,
  asked: Asked,
): Promise<TlsResult & { cpu: number }> {
  const { port, header, pid } = subject;
  const before = cpuSeconds(pid);
  const result = await ask(load, { ...asked, port, header } as TlsTask);
  return { ...result, cpu: cpuSeconds(pid) - before };
}

/** One line a result. A ratio is the median over the rounds of weir against that subject in the same round. */
export async function run(
  out: (line: string) => void,
  only = process.env["BENCH_ONLY"] ?? "",
): Promise<void> {
  const absent = missing("v2ray", "haproxy");
  if (absent !== false) return out(absent);
  const sink = await forkServer("./sink.ts");
  const load = forkPeer("./tls-peer.ts");
  await using opened = new AsyncDisposableStack();
  opened.defer(() => endOf(load));
  opened.defer(() => endOf(sink.child));
  const ours = weir("weir");
  const subjects = [
    opened.use(await trojan("weir", ours, sink.port)),
    opened.use(await trojan("weir portable", ours, sink.port, portable)),
    opened.use(await haproxy(sink.port)),
    opened.use(await trojan("v2ray", v2ray, sink.port, withTickets)),
  ];
  const shares = new Map<Subject, number>();
  for (const subject of subjects) {
    const { amount, whole } = await spent(load, subject, { what: "check" });
    shares.set(subject, amount / whole);
  }
  for (const way of ["down", "up"] as const)
    for (const streams of [1, 8]) {
      const title = `bulk ${way}, ${streams} streams`;
      if (!title.includes(only)) continue;
      await compare(title, subjects, out, ["Gbit/s", "CPU s/GiB"], async (subject) => {
        const task = { what: "bulk", way, streams, ms: BULK_MS } as const;
        const plainShare = shares.get(subject) as number;
        const { amount, whole, seconds, cpu } = await spent(load, subject, { ...task, plainShare });
        return { rate: (amount * 8) / 1e9 / seconds, cpu: cpu / (whole / 2 ** 30) };
      });
    }
  for (const title of ["handshakes", "connections"])
    if (title.includes(only))
      await compare(title, subjects, out, ["per second", "CPU µs each"], async (subject) => {
        const asks = title === "connections";
        const task = { what: "handshakes", parallel: PARALLEL, ms: HANDSHAKES_MS, asks } as const;
        const { amount, seconds, cpu } = await spent(load, subject, task);
        return { rate: amount / seconds, cpu: (cpu * 1e6) / amount };
      });
}

async function compare(
  title: string,
  subjects: readonly Subject[],
  out: (line: string) => void,
  [unit, cpuUnit]: readonly [string, string],
  measure: (subject: Subject) => Promise<Row>,
): Promise<void> {
  const rows = new Map<Subject, Row[]>(subjects.map((subject) => [subject, []]));
  for (const subject of subjects) await measure(subject); // not counted: some are still being compiled
  for (let round = 0; round < ROUNDS; round++)
    for (const subject of subjects) rows.get(subject)?.push(await measure(subject));
  const own = rows.get(subjects[0] as Subject) as Row[];
  for (const [{ name }, of] of rows) {
    const [rate, cpu] = [median(of.map((row) => row.rate)), median(of.map((row) => row.cpu))];
    const ratio = median(own.map((row, at) => row.rate / (of[at] as Row).rate)).toFixed(2);
    const cpuRatio = median(own.map((row, at) => (of[at] as Row).cpu / row.cpu)).toFixed(2);
    const versus = name === "weir" ? "" : `, weir is ${ratio} × this, and ${cpuRatio} × by CPU time`;
    out(`${title}: ${name}: ${unit} ${rate.toFixed(2)}, ${cpuUnit} ${cpu.toFixed(3)}${versus}`);
  }
}
