import { linksOfListener } from "#app/listener-links.ts";
import type { Config, ListenerConfig } from "#config/config.ts";
import { UnusableError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { yamlText } from "#lib/yaml-text.ts";
import { ANY_V4, ANY_V6 } from "#net/address/ip.ts";
import { parseLink } from "#protocols/share-links/index.ts";
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
    process.stdout.write(yamlText({ proxies: flags.rest.map((text) => parseLink(text)) }));
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
  { files }: Setup,
  host: string | null,
): Promise<{ readonly lines: readonly string[]; readonly faults: readonly string[] }> {
  const lines: string[] = [];
  const faults: string[] = [];
  const env = { files, accounts, serverOf: (one: ListenerConfig) => host ?? serverOf(one.hosts, one.name) };
  for (const listener of listeners) {
    try {
      lines.push(...(await linksOfListener(listener, env)));
    } catch (error) {
      if (!(error instanceof UnusableError)) throw error;
      faults.push(`listener ${listener.name} has no link: ${error.message}`);
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
