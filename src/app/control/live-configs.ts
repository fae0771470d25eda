/** The configuration in force as the Controller shows it, switches some of its keys and replaces it. */
import { loadConfig, type ConfigInput } from "#app/load-config.ts";
import type { Runtimes } from "#app/runtimes.ts";
import { keepUpdate } from "#app/update-block.ts";
import type { Config } from "#config/config.ts";
import { TUN_NAME } from "#config/sections/tun.ts";
import type { ConfigsControl, ConfigsPatch } from "#core/control.ts";
import { keepPorts } from "./change.ts";
import { configsView } from "./configs.ts";

/**
 * Dashboards ask for the nodes as soon as the new configuration is in force, and give up on an answer after five seconds:
 * lists that are fetched for the first time are waited for, but not for so long.
 */
const MOST_LISTS_MS = 4_000;

export interface LiveConfigsEnv {
  readonly input: ConfigInput;
  readonly runtimes: Runtimes;
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  /** Another one is in force: what was being tried before does not come back. */
  onReplaced(): void;
}

export function liveConfigs({ input, runtimes, exclusively, onReplaced }: LiveConfigsEnv): ConfigsControl {
  return {
    view: () => {
      const { config, inbounds } = runtimes.present;
      const tunDevice = runtimes.tuns.get(TUN_NAME)?.device ?? null;
      return configsView(config, { ...runtimes.choices, tunDevice }, inbounds.all);
    },
    patch: (fragment) => exclusively(() => patch(fragment, input, runtimes)),
    async replace(source, { force }) {
      await exclusively(async () => {
        await runtimes.reports.report(source.kind === "current" ? "file" : source.kind, async () => {
          const read = await loadConfig(source, input);
          const { config: present } = runtimes.present;
          const config = source.kind === "current" ? read : keepUpdate(read, present, input.host.log);
          await runtimes.apply(force ? config : keepPorts(config, present));
        });
        onReplaced();
      });
      await untilListsCame(runtimes);
    },
  };
}

async function untilListsCame(runtimes: Runtimes): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, MOST_LISTS_MS);
  await Promise.race([runtimes.present.lists.firstLoads(), late]);
  clearTimeout(timer);
}

/** Switches take effect at once; everything else is a configuration like the present one, built and swapped. */
async function patch(fragment: ConfigsPatch, { loader }: ConfigInput, runtimes: Runtimes): Promise<void> {
  const {
    mode = runtimes.choices.mode,
    logLevel = runtimes.choices.logLevel,
    unifiedDelay = runtimes.choices.unifiedDelay,
    ...rest
  } = fragment;
  const base: Config = { ...runtimes.present.config, mode, logLevel };
  const config = { ...base, general: { ...base.general, unifiedDelay } };
  if (Object.keys(rest).length > 0)
    await runtimes.reports.report("patch", async () =>
      runtimes.apply(loader.patched(config, rest), { keepPolicies: true, asksTuns: rest.tun !== undefined }),
    );
  else runtimes.choose(config);
}
