import { ConfigError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { openHost } from "#host/host.ts";
import { LogHub } from "#host/log.ts";
import type { Destination } from "#core/session.ts";
import { explainDirect, renderDirect } from "#kernel-direct/explain.ts";
import { explanationLines } from "#dns/explain-text.ts";
import { parseIp } from "#net/address/ip.ts";
import { DelayBook } from "#net/dial/delay-book.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { explain, renderExplanation } from "#router/explain.ts";
import { parseQuestion } from "#router/question.ts";
import { openHealth } from "#runtime/health.ts";
import { inForce } from "#runtime/in-force.ts";
import { Runtime } from "#runtime/runtime.ts";
import { NO_CHANGE } from "#runtime/tun-change.ts";
import { parseFlags, usageText, UsageError, type FlagTable } from "./flags.ts";
import { linesOf, setUp } from "./load.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  source: { kind: "text", value: "IP", help: "address of the client" },
  network: { kind: "text", value: "NETWORK", help: "tcp or udp" },
  inbound: { kind: "text", value: "NAME", help: "listener that the client came in by" },
  "kernel-direct": { kind: "switch", help: "would the kernel be trusted with it, and if not, why" },
};

export const EXPLAIN_USAGE = usageText("usage: weir explain HOST[:PORT]|URL [flags]", FLAGS);

const TIMEOUT_MS = 10_000;

/**
 * `weir explain HOST[:PORT]|URL`: which rule decides, and why the ones before it do not; which nameservers would be
 * asked for the name. Nothing is dialled.
 */
export async function explainCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const [first = "", ...others] = args;
  const ahead = !first.startsWith("-");
  const flags = parseFlags(ahead ? others : args, FLAGS, env);
  const destination = parseQuestion((ahead ? first : flags.rest[0]) ?? "");
  const source = flags.text("source") === null ? null : parseIp(flags.text("source") as string);
  const network = flags.text("network") ?? "tcp";
  if ((network !== "tcp" && network !== "udp") || (flags.text("source") !== null && source === null))
    throw new UsageError(EXPLAIN_USAGE);
  if ("fault" in destination) throw new UsageError(`${destination.fault}\n${EXPLAIN_USAGE}`);

  const inbound = flags.text("inbound");
  await using runtime = await openQuietRuntime(flags, env);
  if (flags.on("kernel-direct")) {
    process.stdout.write(`${await explainKernelDirect(runtime, destination)}\n`);
    return 0;
  }
  const explanation = await explain(
    runtime.router,
    {
      destination,
      network,
      ...(source === null ? {} : { source }),
      ...(inbound === null ? {} : { inbound: { name: inbound } }),
    },
    AbortSignal.timeout(TIMEOUT_MS),
  );
  const { host } = destination;
  const dnsLines = host === null || runtime.dns === null ? [] : explanationLines(runtime.dns.explain(host));
  process.stdout.write(`${[renderExplanation(explanation), ...dnsLines].join("\n")}\n`);
  return 0;
}

/** A name is resolved: what is learnt are addresses. */
async function explainKernelDirect(
  { classifier, resolver }: QuietRuntime,
  { host, ip }: Destination,
): Promise<string> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const addresses =
    ip === null ? (await resolver.lookup(host as string, { signal })).map((answer) => answer.ip) : [ip];
  return renderDirect(host, explainDirect(classifier, host, addresses, { ruleList: null, target: null }));
}

type QuietRuntime = Awaited<ReturnType<typeof openQuietRuntime>>;

/** A runtime that decides but listens nowhere. */
async function openQuietRuntime(flags: ReturnType<typeof parseFlags>, env: NodeJS.ProcessEnv) {
  const { home, files, first } = setUp(flags, env, SILENT);
  const { file, result } = first();
  if (result.errors !== undefined) throw new ConfigError(linesOf(file, result.errors).join("\n"));
  const config = {
    ...result.config,
    listeners: [],
    tunnels: [],
    dns: { ...result.config.dns, listen: null },
    general: { ...result.config.general, relay: "portable" as const }, // nothing is relayed: no threads are wanted
  };
  const host = openHost(home, files, new LogHub("silent", { write() {}, flush() {} }));
  const runtime = await Runtime.open(config, null, {
    host,
    health: openHealth(new DelayBook(), () => ({ unified: false, trust: DEFAULT_TRUST }), SILENT),
    mode: () => config.mode,
    accept() {},
    inForce: inForce(() => null),
    changeTuns: async () => NO_CHANGE,
    onRuleList() {},
    adopt: async () => {},
    tolerant: false,
  });
  return {
    router: runtime.router,
    dns: runtime.names.dns,
    resolver: runtime.names.resolver,
    classifier: runtime.classifier,
    async [Symbol.asyncDispose]() {
      await runtime.retire(null);
      host[Symbol.dispose]();
    },
  };
}
