/** What the running weir has seen of the probes: connections by their source ports, questions by their names. */
import * as z from "zod";
import { messageOf } from "#core/errors.ts";
import { request } from "#lib/node-http.ts";
import { askController, type ControllerAddress } from "#cli/controller-request.ts";

const EVERY_MS = 100;
/** Characters of a line that does not end; they are dropped. */
const MOST_LINE = 65_536;

const connectionsShape = z.object({
  connections: z
    .array(
      z.object({
        chains: z.array(z.string()),
        rule: z.string(),
        rulePayload: z.string(),
        metadata: z.object({ network: z.string(), sourcePort: z.string(), destinationPort: z.string() }),
      }),
    )
    .nullable(),
});
const proxiesShape = z.object({ proxies: z.record(z.string(), z.object({ type: z.string() })) });
const answerShape = z.object({
  Answer: z.array(z.object({ type: z.number(), data: z.string() })).optional(),
});
const lineShape = z.object({ payload: z.string() });

/** How weir let a connection out. */
export interface Passage {
  /** From the group down to the leaf. */
  readonly chain: string;
  readonly rule: string;
  readonly direct: boolean;
}

export interface RunningWeir extends AsyncDisposable {
  /** Settles once the connections have been looked at after this call, and lines of the log had their time. */
  looked(): Promise<void>;
  passageOf(network: "tcp" | "udp", sourcePort: number, port: number): Passage | null;
  /** Has its DNS service been asked for the name? */
  wasAskedFor(name: string): boolean;
  /** Of a name by its resolver, past fake addresses; empty where it has none, or the resolver is off. */
  addressesOf(name: string, family: 4 | 6): Promise<readonly string[]>;
}

/** Looks at the connections until it is disposed of. Rejects where the running weir cannot be asked. */
export async function watchRunning(address: ControllerAddress): Promise<RunningWeir> {
  const { proxies } = proxiesShape.parse(JSON.parse(await askController(address, "GET", "/proxies")));
  const passages = new Map<string, Passage>();
  const log = await followLog(address);
  const look = async (): Promise<void> => {
    const { connections } = connectionsShape.parse(
      JSON.parse(await askController(address, "GET", "/connections")),
    );
    for (const { chains, rule, rulePayload, metadata } of connections ?? []) {
      const direct = proxies[chains[0] ?? ""]?.type === "Direct";
      const passage = {
        chain: chains.toReversed().join(" → "),
        rule: [rule, rulePayload].filter((part) => part !== "").join(","),
        direct,
      };
      passages.set(keyOf(metadata.network, metadata.sourcePort, metadata.destinationPort), passage);
    }
  };
  let begun = 0;
  let ended = 0;
  const waiting: { readonly after: number; readonly resolve: () => void }[] = [];
  const stop = Promise.withResolvers<"stop">();
  const looking = (async () => {
    for (;;) {
      const number = ++begun;
      await look();
      ended = number;
      for (const { after, resolve } of waiting) if (ended > after) resolve();
      const { promise, resolve } = Promise.withResolvers<"again">();
      const timer = setTimeout(resolve, EVERY_MS, "again");
      const next = await Promise.race([promise, stop.promise]);
      clearTimeout(timer);
      if (next === "stop") return;
    }
  })();
  looking.catch(() => {}); // its end tells
  return {
    async looked() {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push({ after: begun + 1, resolve }); // two: a worker's new connection is shown by the one after
      await Promise.race([promise, looking]);
    },
    passageOf: (network, sourcePort, port) => passages.get(keyOf(network, sourcePort, port)) ?? null,
    wasAskedFor: (name) => log.holds(name),
    async addressesOf(name, family) {
      const path = `/dns/query?name=${encodeURIComponent(name)}&type=${family === 4 ? "A" : "AAAA"}`;
      const answer = await askController(address, "GET", path).catch(() => "{}"); // no such name, or no resolver
      const type = family === 4 ? 1 : 28;
      return (answerShape.parse(JSON.parse(answer)).Answer ?? [])
        .filter((record) => record.type === type)
        .map(({ data }) => data);
    },
    async [Symbol.asyncDispose]() {
      stop.resolve("stop");
      log.close();
      await looking;
    },
  };
}

function keyOf(network: string, sourcePort: string | number, port: string | number): string {
  return `${network} ${sourcePort} ${port}`;
}

interface FollowedLog {
  holds(name: string): boolean;
  close(): void;
}

/** What begins with this in a line of the log is kept: a busy weir says much more. */
export const PROBE_LABEL = "weir-leak-";

function followLog({ secret, ...where }: ControllerAddress): Promise<FollowedLog> {
  const { promise, resolve, reject } = Promise.withResolvers<FollowedLog>();
  const names = new Set<string>();
  let rest = "";
  const take = (chunk: string): void => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MOST_LINE) rest = "";
    for (const line of lines) for (const name of namesIn(line)) names.add(name);
  };
  const headers = { authorization: `Bearer ${Buffer.from(secret).toString("latin1")}` };
  const asked = request({ ...where, path: "/logs?level=debug", headers }, (response) => {
    if (response.statusCode !== 200)
      reject(new Error(`the running weir answers ${response.statusCode} for its log`));
    response.setEncoding("utf8").on("data", take).on("error", ended);
    resolve({ holds: (name) => names.has(name), close: () => void asked.destroy() });
  });
  const ended = (error: Error): void => reject(new Error(`its log cannot be read: ${messageOf(error)}`));
  asked.on("error", ended);
  asked.end();
  return promise;
}

function namesIn(line: string): readonly string[] {
  if (!line.includes(PROBE_LABEL)) return [];
  return lineShape.parse(JSON.parse(line)).payload.match(new RegExp(`${PROBE_LABEL}[^ ]+`, "g")) ?? [];
}
