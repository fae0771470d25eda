import { X509Certificate } from "node:crypto";
import { stringify } from "yaml";
import type { Config, ListenerConfig } from "#config/config.ts";
import { UnusableError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { ANY_V4, ANY_V6 } from "#net/address/ip.ts";
import { parseLink, renderLink } from "#protocols/share-links/index.ts";
import { parseFlags, usageText, UsageError, type FlagTable } from "./flags.ts";
import { linesOf, setUp, type Setup } from "./load.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  host: {
    kind: "text",
    value: "HOST",
    help: "how clients reach this machine, where a listener takes every address",
  },
};

export const LINK_USAGE = usageText(
  "usage: weir link [flags]         print the links of the configured listeners\n       weir link LINK…          print the nodes of links as YAML",
  FLAGS,
);

/** Both ways between links and configurations. Nothing is opened. */
export async function link(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  if (flags.rest.length > 0) {
    process.stdout.write(stringify({ proxies: flags.rest.map((text) => parseLink(text)) }));
    return 0;
  }
  const setup = setUp(flags, env, SILENT);
  const { file, result } = setup.first();
  if (result.errors !== undefined) throw new Error(linesOf(file, result.errors).join("\n"));
  const leftOut = result.warnings.filter(({ path }) => path.startsWith("listeners["));
  const { lines, faults } = await linksOf(result.config, setup, flags.text("host"));
  for (const line of [...linesOf(file, leftOut), ...faults]) process.stderr.write(`${line}\n`);
  if (lines.length === 0) throw new Error(`${file} has no listener that clients reach by links`);
  process.stdout.write(lines.map((line) => `${line}\n`).join(""));
  return 0;
}

async function linksOf(
  { listeners, accounts }: Config,
  setup: Setup,
  host: string | null,
): Promise<{ readonly lines: readonly string[]; readonly faults: readonly string[] }> {
  const lines: string[] = [];
  const faults: string[] = [];
  for (const listener of listeners) {
    const { name, protocol, options, ports, hosts } = listener;
    const serverName = await certificateName(listener, setup);
    const nodesAt = (server: string, port: number) =>
      protocol.listenerNodes?.(options, { name, server, port, serverName, accounts }) ?? [];
    try {
      for (const port of ports) {
        if (nodesAt("", port).length === 0) continue;
        for (const node of nodesAt(host ?? serverOf(hosts, name), port))
          lines.push(...[renderLink(node)].filter((text) => text !== null));
      }
    } catch (error) {
      if (!(error instanceof UnusableError)) throw error;
      faults.push(`listener ${name} has no link: ${error.message}`);
    }
  }
  return { lines, faults };
}

function serverOf(hosts: ListenerConfig["hosts"], name: string): string {
  const own = hosts.find((ip) => ip !== ANY_V4 && ip !== ANY_V6);
  if (own === undefined)
    throw new UsageError(`${name} takes every address: say how clients reach it\n${LINK_USAGE}`);
  return own;
}

/** The first DNS name in the certificate; null where there is none to read. */
async function certificateName({ options }: ListenerConfig, { files }: Setup): Promise<string | null> {
  const { certificate }: { readonly certificate?: string } = options;
  if (certificate === undefined || certificate === "") return null;
  const { subjectAltName = "" } = new X509Certificate(await files.readPem(certificate));
  return /DNS:([^,\s]+)/.exec(subjectAltName)?.[1] ?? null;
}
