import { messageOf } from "#core/errors.ts";
import type { Config } from "#config/config.ts";
import type { SafeFiles } from "#core/files.ts";
import { SILENT } from "#core/log.ts";
import { formatLine } from "#host/log.ts";
import type { ParsedFlags } from "./flags.ts";
import { entriesOf, repeatedId } from "#governance/policy-book.ts";
import type { GovernanceSettings } from "#governance/settings.ts";
import { listenerFaults, nodeFaults, type ItemFault } from "#runtime/dry-run.ts";
import { journalSettings } from "#runtime/user-settings.ts";
import { peek } from "#config/items.ts";
import { formatDiagnostic } from "#config/report.ts";
import { summarize } from "#config/summary.ts";
import { readYaml } from "#config/yaml.ts";
import { checkAccess } from "#store/file-safety.ts";
import { linesOf, setUp } from "./load.ts";
import { newFileText, type Source } from "./source.ts";

/** `-t`: reads everything, binds nothing, sends nothing. The closing lines are a contract with other tools. */
export async function check(flags: ParsedFlags, env: NodeJS.ProcessEnv): Promise<number> {
  const say = (level: "error" | "warning" | "info", text: string) =>
    process.stdout.write(formatLine({ level, text, atMs: Date.now() }));
  let file: string | null = null;
  try {
    const { source, first, files } = setUp(flags, env, SILENT);
    file = source.file;
    if (source.isNew !== undefined) say("info", newFileText(source));
    const { file: named, result } = first();
    for (const { text, detail } of summarize(named, result.warnings))
      if (!detail || flags.on("all")) say("warning", text);
    for (const line of linesOf(named, result.errors ?? [])) say("error", line);
    if (result.errors === undefined) {
      const repeated = repeatedPolicy(result.config.trafficControl);
      if (repeated !== null) {
        say("error", repeated);
        return close(file, "failed", 1);
      }
      for (const text of codeFaults(result.config, files)) say("warning", text);
      for (const text of storeFaults(result.config, files)) say("warning", text);
      const nodes = await nodeFaults(result.config, files);
      const faults = [...nodes, ...(await listenerFaults(result.config, files))];
      for (const line of withPlaces(faults, named, source)) say("warning", line);
      return close(file, "is successful", 0);
    }
  } catch (error) {
    say("error", messageOf(error));
    file ??= flags.text("config") === null && flags.text("f") !== "-" ? flags.text("f") : null;
  }
  return close(file, "failed", 1);
}

/** A line each, as for other remarks. A listener that a top-level key makes is no item of a list: it has its name alone. */
function withPlaces(faults: readonly ItemFault[], file: string, source: Source): readonly string[] {
  if (faults.length === 0) return [];
  const { root, locate } = readYaml(source.read());
  return faults.map(({ list, name, what }) => {
    const items = root?.[list];
    const at = Array.isArray(items)
      ? items.findLastIndex((item) => peek(item, "name", "hyphen") === name)
      : -1;
    if (at < 0) return what;
    const place = { ...locate([list, at], "value"), path: `${list}[${at}]` };
    return formatDiagnostic(file, { severity: "warning", ...place, message: what });
  });
}

/** The file of one-time codes. */
function codeFaults(config: Config, files: SafeFiles): readonly string[] {
  try {
    journalSettings(config, files);
    return [];
  } catch (error) {
    return [`${messageOf(error)}; a start or a reload is refused`];
  }
}

/** Stores that may be ours, and that others could read or replace. */
function storeFaults({ svc, trafficControl }: Config, files: SafeFiles): readonly string[] {
  const stores = { "svc.store": svc?.store, "traffic-control.store": trafficControl?.store };
  return Object.entries(stores).flatMap(([key, store]) => {
    try {
      if (store !== undefined) checkAccess(files.resolve(store));
      return [];
    } catch (error) {
      return [`${key}: ${messageOf(error)}; a start leaves the store closed, a reload is refused`];
    }
  });
}

/** Policies without an id are identified by their subject, which only governance/ can compare. */
function repeatedPolicy(settings: GovernanceSettings | null): string | null {
  const id = settings?.enabled === true ? repeatedId(entriesOf(settings)) : null;
  return id === null ? null : `traffic-control: policy id ${id} is used twice`;
}

function close(file: string | null, verdict: string, code: number): number {
  process.stdout.write(
    file === null ? `configuration test ${verdict}\n` : `configuration file ${file} test ${verdict}\n`,
  );
  return code;
}
