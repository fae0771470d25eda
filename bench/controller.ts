/** What the Controller costs: a dashboard that watches a full table, and a crowd of slow clients. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { openController, type Controller } from "#api/open-controller.ts";
import { Agent, get } from "node:http";
import { SILENT } from "#core/log.ts";
import { OPEN_OPTIONS } from "../test/support/api-app.ts";
import { MemoryControl } from "../test/support/memory-control.ts";
import { latencies, quantile, slowClients } from "../test/support/slow-clients.ts";
import { fullTable } from "./controller-table.ts";

export const NAME = "controller";

const ENTRIES = 5000;
const FRAMES = 15;
const FRESH = 7;
const ANSWERS = 8;
const CROWD = 2000;

export async function run(out: (line: string) => void): Promise<void> {
  out(await firstAnswers());
  out(await watching());
  out(await crowded());
}

/** CPU time of a fresh process for its first answers, all its threads together: compilers and collectors work beside. */
async function firstAnswers(): Promise<string> {
  const costs: number[][] = [];
  for (let run = 0; run < FRESH; run++) costs.push(await answersOfAFreshOne());
  const median = (at: number) =>
    quantile(
      costs.map((list) => list[at] as number).sort((a, b) => a - b),
      0.5,
    ).toFixed(0);
  const shown = Array.from({ length: ANSWERS }, (_, at) => median(at)).join(", ");
  return `GET /connections, ${ENTRIES} entries, ms of CPU for the first ${ANSWERS} answers of a process: ${shown}`;
}

async function answersOfAFreshOne(): Promise<number[]> {
  const server = fork(new URL("./controller-first.ts", import.meta.url), [String(ENTRIES)]);
  const agent = new Agent({ keepAlive: true });
  try {
    const [port] = (await once(server, "message")) as [number];
    const tell = async (what: string): Promise<number> => {
      server.send(what);
      return ((await once(server, "message")) as [number])[0];
    };
    const ask = async (path: string): Promise<void> => {
      const [response] = await once(get({ host: "127.0.0.1", port, path, agent }), "response");
      await once((response as NodeJS.ReadableStream).resume(), "end");
    };
    await ask("/version"); // what the first request of all costs is another matter
    const costs: number[] = [];
    for (let answer = 0; answer < ANSWERS; answer++) {
      await tell("begin");
      await ask("/connections");
      costs.push(await tell("end"));
    }
    return costs;
  } finally {
    agent.destroy();
    server.kill();
  }
}

async function watching(): Promise<string> {
  const control = fullTable(ENTRIES);
  await using controller = await openPlain(control);
  const reader = fork(new URL("./controller-reader.ts", import.meta.url), [String(portOf(controller))]);
  try {
    const [sizeBytes] = (await once(reader, "message")) as [number]; // the first one writes everything
    const before = process.cpuUsage();
    const startedMs = performance.now();
    for (let frame = 0; frame < FRAMES; frame++) {
      for (const entry of control.table) entry.count("download", 1500);
      await once(reader, "message");
    }
    const { user, system } = process.cpuUsage(before);
    const share = (user + system) / 1000 / (performance.now() - startedMs);
    const size = `${(sizeBytes / 1e6).toFixed(1)} MB a document`;
    return `/connections, ${ENTRIES} entries every second: ${(share * 100).toFixed(1)} % of a core, ${size}`;
  } finally {
    reader.kill();
  }
}

async function crowded(): Promise<string> {
  await using controller = await openPlain(new MemoryControl());
  const port = portOf(controller);
  using crowd = await slowClients(port, CROWD);
  const took = await latencies(port, 500);
  const [median, p99] = [0.5, 0.99].map((share) => quantile(took, share).toFixed(1));
  return `${crowd.open} clients that trickle headers: others wait ${median} ms (median), ${p99} ms (p99)`;
}

function openPlain(control: MemoryControl): Promise<Controller> {
  const listeners = { http: { host: "127.0.0.1", port: 0 } };
  return openController({ ...OPEN_OPTIONS, listeners }, control, SILENT);
}

function portOf({ endpoints }: Controller): number {
  return endpoints[0]?.port as number;
}
