/** Values and answers for a new listener or node; the file itself is changed by `ConfigFileControl`. */
import type { SetupControl } from "#core/control.ts";
import { ApiError, ConfigError } from "#core/errors.ts";
import { parseTarget, probeTargets } from "#transport/reality/target/probe.ts";
import { makeSelfSigned } from "#transport/tls/self-signed.ts";
import type { ControlEnv } from "#app/control/control-env.ts";
import { linksOfListener } from "#app/listener-links.ts";
import { makeKeys } from "./keys.ts";
import { nodesOfText } from "./nodes.ts";
import { portFault } from "./port.ts";
import { viewOfConfig } from "./view.ts";

const TARGET_TIMEOUT_MS = 8_000;

export function setupControl({ host, runtime }: Pick<ControlEnv, "host" | "runtime">): SetupControl {
  return {
    view: () => viewOfConfig(runtime().config),
    keys: makeKeys,
    certificate: (names) => makeSelfSigned(names, Date.now()),
    portFault,
    targets: probe,
    nodesOf(text) {
      const { proxies, groups } = runtime().config;
      return nodesOfText(text, new Set([...proxies, ...groups].map(({ name }) => name)));
    },
    async links(name, server) {
      const { listeners, accounts } = runtime().config;
      const listener = listeners.find((one) => one.name === name);
      if (listener === undefined) throw new ApiError(404, `there is no listener ${name}`);
      return linksOfListener(listener, { files: host.files, accounts, serverOf: () => server });
    },
  };
}

const probe: SetupControl["targets"] = async (sites, signal) => {
  const targets = sites.map((site) => {
    const target = parseTarget(site);
    if (target === null) throw new ConfigError(`expected HOST or HOST:PORT, got ${JSON.stringify(site)}`);
    return target;
  });
  const probed = await probeTargets(targets, { timeoutMs: TARGET_TIMEOUT_MS, needsMldsa65: false, signal });
  return probed.map(({ target, facts, verdict }) => ({
    ...target,
    ...verdict,
    roundTripMs: typeof facts === "string" ? null : facts.roundTripMs,
  }));
};
