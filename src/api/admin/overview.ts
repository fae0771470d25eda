import { availableParallelism } from "node:os";
import type { Control } from "#core/control.ts";
import type { UserAdmin } from "#core/users.ts";
import { fleetTraffic, type NodePart, type NodeTraffic } from "./by-node.ts";
import { inboundJson } from "./shapes.ts";

const API_VERSION = 1;
const OS_NAMES: Readonly<Record<string, string>> = { win32: "windows" };
const ARCH_NAMES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

export function overviewJson(control: Control, admin: UserAdmin, by?: "node") {
  const own = { ...control.connections.totals(), connections: control.connections.size };
  const nodes = fleetTraffic(admin.fleet, own);
  const of = (key: keyof NodeTraffic) => (nodes ?? [own]).reduce((total, one) => total + one[key], 0);
  const inbounds = admin.inbounds();
  const sum = (key: "userCount" | "enabledUserCount") => inbounds.reduce((total, one) => total + one[key], 0);
  const total = sum("userCount");
  const enabled = sum("enabledUserCount");
  return {
    version: control.build.version,
    api_version: API_VERSION,
    status: "running",
    started_at: Math.trunc(performance.timeOrigin),
    uptime_seconds: Math.trunc(performance.now() / 1000),
    platform: {
      os: OS_NAMES[process.platform] ?? process.platform,
      arch: ARCH_NAMES[process.arch] ?? process.arch,
      cpu_cores: availableParallelism(),
      memory_bytes: control.memoryBytes(),
      // What keeps this runtime busy at the moment: the nearest thing to a task count that it has.
      goroutines: Math.max(1, process.getActiveResourcesInfo().length),
    },
    traffic: {
      uplink_total: of("uploadBytes"),
      downlink_total: of("downloadBytes"),
      active_connections: of("connections"),
    },
    ...(nodes === null || by === undefined ? {} : { nodes: nodes.map(partJson) }),
    ...rollbackJson(admin),
    users: { total, enabled, disabled: total - enabled },
    capabilities: admin.limitKinds(),
    authentication_enabled: true,
    inbounds: inbounds.map(inboundJson),
  };
}

function partJson({ node, state, uploadBytes, downloadBytes, connections }: NodePart) {
  return {
    node,
    state,
    uplink_total: uploadBytes,
    downlink_total: downloadBytes,
    active_connections: connections,
  };
}

/** The contract's list, and beside it what this build can manage besides. */
export function protocolsJson(admin: UserAdmin) {
  const listed = (isAdditional: boolean) =>
    admin
      .protocols()
      .filter((protocol) => protocol.isAdditional === isAdditional)
      .map(({ type, label, network, credential }) => ({
        kind: "inbound",
        type,
        name: label,
        category: "proxy",
        network,
        tls: true,
        credential,
        update_policy: "live",
      }));
  return { schema_version: 1, protocols: listed(false), additional_protocols: listed(true) };
}

/** Loud as long as it was not accepted, absent otherwise. */
function rollbackJson({ rollback }: UserAdmin) {
  if (rollback === null) return {};
  const { seenGeneration, foundGeneration, sinceMs } = rollback;
  return {
    rollback: { seen_generation: seenGeneration, found_generation: foundGeneration, since: sinceMs },
  };
}
