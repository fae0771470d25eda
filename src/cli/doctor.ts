import { messageOf } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { formatDiagnostic } from "#config/report.ts";
import type { Config } from "#config/config.ts";
import { addressOf } from "./controller-address.ts";
import { askController } from "./controller-request.ts";
import { clockFinding } from "#cli/doctor/clock.ts";
import { bad, fine, type Finding } from "#cli/doctor/finding.ts";
import { leakFindings } from "#cli/doctor/leaks/leaks.ts";
import { watchRunning } from "#cli/doctor/leaks/running.ts";
import { LEAK_FLAGS, leakServers } from "#cli/doctor/leaks/servers.ts";
import { networkFindings } from "#cli/doctor/network.ts";
import { ownFindings } from "#cli/doctor/own.ts";
import { systemFindings } from "#cli/doctor/system.ts";
import { updateFindings } from "#cli/doctor/updates.ts";
import { parseFlags, usageText, UsageError, type FlagTable, type ParsedFlags } from "./flags.ts";
import { setUp, type Setup } from "./load.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  json: { kind: "switch", help: "a line of JSON for each finding" },
  name: { kind: "text", value: "NAME", help: "what the nameservers are asked for; absent: example.com" },
  ntp: {
    kind: "text",
    value: "SERVER",
    help: "a time server to ask; absent: that of the section ntp, if it is on",
  },
  ...LEAK_FLAGS,
};

export const DOCTOR_USAGE = usageText(
  `usage: weir doctor [flags]   what of this machine is in the way of the configuration: what was looked at, what was
                            found, what it means, what to do. 1 where there is an error
`,
  FLAGS,
);

/** `weir doctor`. Nothing is changed; the nameservers of the system are asked for one name, the release folder of `update` which version it has, other servers with `-leaks` alone. */
export async function doctorCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  if (flags.rest.length > 0) throw new UsageError(DOCTOR_USAGE);
  const setup = setUp(flags, env, SILENT);
  const [config, about] = read(setup);
  const name = flags.text("name") ?? "example.com";
  const findings: readonly Finding[] = flags.on("leaks")
    ? await leaks(config, about, flags, { home: setup.home, name })
    : [
        ...about,
        ...(await systemFindings(config, setup.home)),
        await clockFinding(flags.text("ntp"), config),
        ...(await networkFindings(config, name)),
        ...(config === null
          ? []
          : [
              ...(await ownFindings(config, setup.files, await isRunning(config, setup.home))),
              ...(await updateFindings(config, setup.files)),
            ]),
      ];
  for (const finding of findings)
    process.stdout.write(`${flags.on("json") ? JSON.stringify(finding) : textOf(finding)}\n`);
  return findings.some(({ level }) => level === "error") ? 1 : 0;
}

/** The leak test needs the configuration, for the way to the running weir, and that. */
async function leaks(
  config: Config | null,
  about: readonly Finding[],
  flags: ParsedFlags,
  { home, name }: { readonly home: string; readonly name: string },
): Promise<readonly Finding[]> {
  if (config === null) return about;
  const servers = leakServers(flags, config);
  try {
    await using running = await watchRunning(
      addressOf(config, home, config.controller.secret, "doctor -leaks"),
    );
    return await leakFindings(servers, running, name);
  } catch (error) {
    return [
      bad("error", "leak test", messageOf(error), [
        "without the weir that runs with this configuration nothing can be told apart",
        "start it, with external-controller at 127.0.0.1 or external-controller-unix, and the secret of this file",
      ]),
    ];
  }
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
