/** Traffic control for the API: joins the running policies with the rules, the file and the queue of changes. */
import { parseTrafficControl } from "#config/traffic-control.ts";
import type { GovernanceControl, GovernanceView, PoliciesChange, PoliciesView } from "#core/governance.ts";
import { ApiError, ConfigError, messageOf, StoreError } from "#core/errors.ts";
import { withoutFolders } from "#core/places.ts";
import { documentOf } from "#governance/document.ts";
import type { Prepared } from "#governance/governance.ts";
import type { GovernanceSettings } from "#governance/settings.ts";
import { prepareTrafficControl } from "#governance/traffic-control.ts";
import { ruleSignature } from "#governance/signature.ts";
import type { ControlEnv } from "./control-env.ts";

const BLOCK = "traffic-control";

export function governanceControl({ host, runtime, loader, exclusively }: GovernanceEnv): GovernanceControl {
  const { governance, files } = host;
  const policies = (): PoliciesView => ({
    revision: governance.revision,
    config: documentOf(governance.settings),
  });
  const checkRevision = (revision: number): void => {
    if (revision !== governance.revision)
      throw new ApiError(409, `revision ${revision} is stale, the current one is ${governance.revision}`);
  };
  const replace = (change: PoliciesChange): Promise<PoliciesView> =>
    put(change).catch((error: unknown) => {
      host.log.warning(`traffic-control: ${messageOf(error)}`);
      throw withoutPlaces(error, host.home);
    });
  const put = async ({ revision, config, persist }: PoliciesChange): Promise<PoliciesView> => {
    checkRevision(revision);
    const settings = settingsOf(config, files, governance.settings);
    return exclusively(async () => {
      checkRevision(revision);
      if (settings.store !== governance.settings?.store)
        loader.refusePolicyStore(runtime().config, settings.store);
      const prepared = await prepareOr500(() => prepareTrafficControl(host, settings, { tolerant: false }));
      if (persist) await save(prepared, loader.rewrite(BLOCK, documentOf(settings)));
      prepared.activate();
      return policies();
    });
  };
  const shown = (view: GovernanceView): GovernanceView => ({
    ...view,
    storeFault: view.storeFault === null ? null : withoutFolders(view.storeFault, `${host.home}/`),
  });
  return {
    get enabled() {
      return governance.enabled;
    },
    nowSeconds: () => Math.floor(host.ledger.clock.wallMs() / 1000),
    status: () => shown(governance.status()),
    policies,
    replace,
    rules: () =>
      Iterator.from(runtime().router.views()).map(({ rule }) => ({
        index: rule.index,
        type: rule.apiType,
        payload: rule.payload,
        target: rule.target,
        fingerprint: ruleSignature(rule),
      })),
    async reset(id) {
      try {
        const status = await governance.reset(id);
        return status === null ? null : shown(status);
      } catch (error) {
        host.log.warning(`traffic-control: ${messageOf(error)}`);
        throw withoutPlaces(
          error instanceof StoreError ? new ApiError(500, messageOf(error), { cause: error }) : error,
          host.home,
        );
      }
    },
    report: (query) => governance.report(query),
    monthReport: (month) => governance.monthReport(month),
  };
}

type GovernanceEnv = Pick<ControlEnv, "host" | "runtime" | "loader" | "exclusively">;

/** Throws `ConfigError`. The store that is in use is accepted as it is. */
function settingsOf(
  config: unknown,
  files: GovernanceEnv["host"]["files"],
  current: GovernanceSettings | null,
): GovernanceSettings {
  if (typeof config !== "object" || config === null || Array.isArray(config))
    throw new ConfigError("config: expected a traffic-control document");
  const resolve = (path: string) => (path === current?.store ? path : files.resolve(path));
  const parsed = parseTrafficControl(config, { resolve });
  if ("config" in parsed) return parsed.config;
  throw new ConfigError(parsed.errors.map(({ path, message }) => `${path}: ${message}`).join("\n"));
}

/** A document that is good but cannot be put in force is our trouble, not the client's. */
async function prepareOr500(prepare: () => Promise<Prepared>): Promise<Prepared> {
  try {
    return await prepare();
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ApiError(500, messageOf(error), { cause: error });
  }
}

/** Clients of the API learn what is wrong, not where this machine keeps its files; the log has it all. */
function withoutPlaces(error: unknown, home: string): unknown {
  if (!(error instanceof ApiError || error instanceof ConfigError)) return error;
  const text = withoutFolders(error.message, `${home}/`);
  if (text === error.message) return error;
  return error instanceof ApiError
    ? new ApiError(error.status, text, { cause: error })
    : new ConfigError(text, { cause: error });
}

async function save(prepared: Prepared, written: Promise<void>): Promise<void> {
  try {
    await written;
  } catch (error) {
    prepared.abandon();
    if (error instanceof ApiError || error instanceof ConfigError) throw error;
    throw new ApiError(500, `the configuration file: ${messageOf(error)}`, { cause: error });
  }
}
