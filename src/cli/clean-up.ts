import { cleanUp, type RoutingPlace } from "#capture/index.ts";
import { messageOf } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { cleanUpClassifier } from "#kernel-direct/clean-up.ts";
import { parseFlags, usageText, type FlagTable, type ParsedFlags } from "./flags.ts";
import { setUp } from "./load.ts";
import { RUN_FLAGS } from "./run-flags.ts";

const FLAGS: FlagTable = {
  ...RUN_FLAGS,
  "keep-closed": {
    kind: "switch",
    help: "leave what tun.on-exit: closed, or a restart, keeps traffic in with",
  },
};

export const CLEAN_UP_USAGE = usageText("usage: weir cleanup [flags of weir] [-keep-closed]", FLAGS);

/**
 * `weir cleanup [flags of weir]`: the ip rules, routes, nftables and filters of a weir that was killed. A configuration that
 * has become faulty meanwhile is an error, but what can be found without it is taken away all the same.
 */
export async function cleanUpCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  const { places, fault } = placesOf(flags, env);
  try {
    cleanUpClassifier();
    await cleanUp(places, { keepsClosed: flags.on("keep-closed") }, SILENT);
  } catch (error) {
    throw new Error(`cleanup: ${messageOf(error)}`, { cause: error });
  }
  if (fault !== null) throw new Error(`cleanup: ${fault}; what needs no configuration was taken away`);
  return 0;
}

interface Places {
  readonly places: readonly RoutingPlace[];
  /** Why the places are not known. */
  readonly fault: string | null;
}

function placesOf(flags: ParsedFlags, env: NodeJS.ProcessEnv): Places {
  try {
    const { result } = setUp(flags, env, SILENT).first();
    if (result.errors !== undefined)
      return { places: [], fault: "the configuration has errors, see weir -t" };
    const { tun, tunListeners } = result.config;
    const places = [tun, ...tunListeners].map((each) => ({
      ruleIndex: each.iproute2RuleIndex,
      fallbackRuleIndex: each.autoRedirectIproute2FallbackRuleIndex,
      tableIndex: each.iproute2TableIndex,
    }));
    return { places, fault: null };
  } catch (error) {
    return { places: [], fault: messageOf(error) };
  }
}
