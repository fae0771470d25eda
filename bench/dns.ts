/**
 * Cached answers per second: the engine in a process held to one core, dnsperf on another, dnsmasq in the same run for
 * comparison. Every name is asked once before, so nothing is forwarded.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort, HOST, missing, startPeer } from "../test/integration/dns-kit.ts";

export const NAME = "dns";

const NAMES = 1000;
/** The subjects take turns, so that what else the machine does hits all of them. */
const ROUNDS = 3;
const SECONDS = 2;
const SERVER_CORE = "0";
const LOAD_CORE = "1";
const execute = promisify(execFile);

interface Subject {
  readonly name: string;
  readonly open: (names: readonly string[]) => Promise<{ port: number } & AsyncDisposable>;
}

/** Prints one line a subject; `out` takes whole lines. */
export async function run(out: (line: string) => void): Promise<void> {
  const absent = missing("dnsperf", "dnsmasq", "taskset");
  if (absent !== false) return out(`SKIP bench dns: ${absent}`);
  const folder = await mkdtemp(join(tmpdir(), "dns-bench-"));
  try {
    const names = Array.from({ length: NAMES }, (_, index) => `host${index}.example.org`);
    await writeFile(join(folder, "queries"), names.map((name) => `${name} A\n`).join(""));
    await using stack = new AsyncDisposableStack();
    const subjects = [];
    for (const { name, open } of [ours("redir-host"), ours("fake-ip"), dnsmasq])
      subjects.push({ name, port: stack.use(await open(names)).port, rates: [] as number[] });
    for (const { port } of subjects) await load(port, folder, 1); // fills the caches and warms up
    for (let round = 0; round < ROUNDS; round++)
      for (const { port, rates } of subjects) rates.push(await load(port, folder, SECONDS));
    const peer = median(subjects.at(-1)?.rates ?? []);
    for (const { name, rates } of subjects) {
      const rate = median(rates);
      out(`dns ${name}: ${Math.round(rate)} cached answers/s, ${(rate / peer).toFixed(2)} of dnsmasq`);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function load(port: number, folder: string, seconds: number): Promise<number> {
  const words = [
    "-s",
    HOST,
    "-p",
    String(port),
    "-d",
    join(folder, "queries"),
    "-l",
    String(seconds),
    "-c",
    "8",
    "-T",
    "1",
  ];
  const { stdout } = await execute("taskset", ["-c", LOAD_CORE, "dnsperf", ...words]);
  const lost = Number(/Queries lost:\s+(\d+)/.exec(stdout)?.[1]);
  const completed = Number(/Queries completed:\s+(\d+)/.exec(stdout)?.[1]);
  const failed = completed - Number(/NOERROR (\d+)/.exec(stdout)?.[1] ?? 0);
  if (lost > completed / 100 || failed > 0) throw new Error(`${lost} answers lost, ${failed} failed`);
  return Number(/Queries per second:\s+([\d.]+)/.exec(stdout)?.[1]);
}

function ours(mode: "redir-host" | "fake-ip"): Subject {
  return {
    name: `weir ${mode}`,
    async open() {
      const script = new URL("dns-server.ts", import.meta.url).pathname;
      const words = [
        "-c",
        SERVER_CORE,
        process.execPath,
        "--disable-warning=ExperimentalWarning",
        script,
        mode,
      ];
      const child = spawn("taskset", words, { stdio: ["pipe", "pipe", "inherit"] });
      const ended = once(child, "exit");
      const failed = ended.then(() => Promise.reject(new Error("the engine did not start")));
      const [line] = (await Promise.race([once(child.stdout, "data"), failed])) as [Buffer];
      failed.catch(() => {}); // its end is awaited below
      const close = async () => {
        child.stdin.end();
        await ended;
      };
      return { port: Number(String(line)), [Symbol.asyncDispose]: close };
    },
  };
}

const dnsmasq: Subject = {
  name: "dnsmasq",
  async open(names) {
    const port = await freePort();
    const settings = [
      "no-daemon",
      "no-resolv",
      "no-hosts",
      `port=${port}`,
      `listen-address=${HOST}`,
      "user=root",
    ];
    const records = names.map((name) => `host-record=${name},192.0.2.1`);
    const peer = await startPeer(
      "taskset",
      async (folder) => {
        const file = join(folder, "conf");
        await writeFile(
          file,
          [...settings, "bind-interfaces", `pid-file=${folder}/pid`, ...records].join("\n"),
        );
        return ["-c", SERVER_CORE, "dnsmasq", "-C", file];
      },
      async () =>
        (
          await execute("dig", [
            `@${HOST}`,
            "-p",
            String(port),
            "+short",
            "+time=1",
            "+tries=1",
            "host1.example.org",
          ])
        ).stdout !== "",
    );
    return { port, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() };
  },
};
