import { messageOf } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { formatDiagnostic } from "#config/report.ts";
import type { Config } from "#config/config.ts";
import { addressOf } from "./controller-address.ts";
import { askController } from "./controller-request.ts";
import { bad, fine, type Finding } from "#cli/doctor/finding.ts";
import { networkFindings } from "#cli/doctor/network.ts";
import { ownFindings } from "#cli/doctor/own.ts";
import { systemFindings } from "#cli/doctor/system.ts";
import { parseFlags, usageText, UsageError, type FlagTable } from "./flags.ts";
import { setUp, type Setup } from "./load.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  json: { kind: "switch", help: "a line of JSON for each finding" },
  name: { kind: "text", value: "NAME", help: "what the nameservers are asked for; absent: example.com" },
};

export const DOCTOR_USAGE = usageText(
  `usage: weir doctor [flags]   what of this machine is in the way of the configuration: what was looked at, what was
                            found, what it means, what to do. 1 where there is an error
`,
  FLAGS,
);

/** `weir doctor`. Nothing is changed; the nameservers of the system are asked for one name. */
export async function doctorCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  if (flags.rest.length > 0) throw new UsageError(DOCTOR_USAGE);
  const setup = setUp(flags, env, SILENT);
  const [config, about] = read(setup);
  const findings: readonly Finding[] = [
    ...about,
    ...(await systemFindings(config, setup.home)),
    ...(await networkFindings(config, flags.text("name") ?? "example.com")),
    ...(config === null ? [] : await ownFindings(config, setup.files, await isRunning(config, setup.home))),
  ];
  for (const finding of findings)
    process.stdout.write(`${flags.on("json") ? JSON.stringify(finding) : textOf(finding)}\n`);
  return findings.some(({ level }) => level === "error") ? 1 : 0;
}

function read(setup: Setup): readonly [Config | null, readonly Finding[]] {
  const words = ["weir does not start with it", "correct what it says; weir -t shows all of it"] as const;
  try {
    const { file, result } = setup.first();
    if (result.errors === undefined)
      return [result.config, [fine("configuration", `${file}: ${result.warnings.length} warnings`)]];
    return [
      null,
      result.errors.map((each) => bad("error", "configuration", formatDiagnostic(file, each), words)),
    ];
  } catch (error) {
    return [null, [bad("error", "configuration", messageOf(error), words)]];
  }
}

async function isRunning(config: Config, home: string): Promise<boolean> {
  try {
    const address = addressOf(config, home, config.controller.secret, "");
    const { meta }: { meta?: unknown } = JSON.parse(await askController(address, "GET", "/version"));
    return meta === true;
  } catch {
    return false; // none answers with this secret
  }
}

const MARKS = { ok: "ok     ", warning: "warning", error: "ERROR  " };

function textOf({ what, level, found, meaning, advice }: Finding): string {
  const more = [meaning, advice].filter((each) => each !== undefined).map((each) => `          ${each}`);
  return [`${MARKS[level]}   ${what}: ${found}`, ...more].join("\n");
}
