/** `traffic-control`: limits, quotas, reports. One schema for the file and for the body of the policies' PUT. */
import { duration, parseDurationMs } from "#core/duration.ts";
import {
  block,
  choice,
  Fault,
  filePath,
  flag,
  httpUrl,
  int,
  list,
  maybe,
  name,
  scalar,
  show,
  text,
} from "#core/fields.ts";
import { trimEndOf } from "#lib/trim-end.ts";
import { hostPort, network } from "#net/address/address-fields.ts";
import { ANY_V4, ANY_V6 } from "#net/address/ip.ts";
import { strict } from "#config/strict.ts";

const MIB = 1024 * 1024;
const MOST_POLICIES = 256;
const MOST_LEASES = 8;

const policyId = () =>
  scalar({ type: "string", pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" }, (source, raw) => {
    if (/^[a-z0-9][a-z0-9._-]{0,127}$/i.test(source)) return source;
    return new Fault(
      `expected 1 to 128 letters, digits, '.', '_' or '-', a letter or digit first, got ${show(raw)}`,
    );
  });

const mac = () =>
  scalar({ type: "string" }, (source, raw) => {
    if (/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(source)) return source.toLowerCase();
    return new Fault(`expected a MAC address such as aa:bb:cc:dd:ee:ff, got ${show(raw)}`);
  });

const timeZone = () =>
  scalar({ type: "string" }, (source, raw) => {
    try {
      return new Intl.DateTimeFormat("en", { timeZone: source }).resolvedOptions().timeZone;
    } catch {
      // The runtime's own table of names is the check.
      return new Fault(`expected a time zone such as Europe/Berlin, got ${show(raw)}`);
    }
  });

const storeSize = () =>
  scalar({ type: "integer", minimum: 0 }, (source, raw) => {
    const value = source === "" ? NaN : Number(source);
    if (value === 0) return 64 * MIB;
    if (Number.isInteger(value) && value >= 4 * MIB && value <= 1024 * MIB) return value;
    return new Fault(`expected bytes from ${4 * MIB} (4 MiB) to ${1024 * MIB} (1 GiB), got ${show(raw)}`);
  });

/** Bits per second or bytes; 0 is no limit. */
const amount = () => int(0).default(0);

const quota = strict(
  block({
    "total-bytes": amount(),
    "upload-bytes": amount(),
    "download-bytes": amount(),
    window: maybe(duration("1h", "365d")),
    "overage-upload-bps": amount(),
    "overage-download-bps": amount(),
    portal: maybe(flag()),
  }),
).transform(({ window, ...value }, context) => {
  const capped = value.totalBytes > 0 || value.uploadBytes > 0 || value.downloadBytes > 0;
  if (capped !== (window !== null)) {
    const message = capped
      ? "is required where a byte cap is set, for example 30d"
      : "needs a byte cap: total-bytes, upload-bytes or download-bytes";
    context.issues.push({ code: "custom", path: ["window"], message, input: window });
  }
  return { ...value, windowMs: window };
});

const POLICY = {
  id: maybe(policyId()),
  name: text().default(""),
  enabled: flag().default(true),
  "upload-bps": amount(),
  "download-bps": amount(),
  quota: maybe(quota),
  portal: maybe(flag()),
};

interface PortalFlags {
  readonly portal: boolean | null;
  readonly quota: { readonly portal: boolean | null } | null;
}

/** The flag may be in the policy or in its quota; a contradiction of both is a mistake. */
function portalOf({ portal, quota: nested }: PortalFlags): boolean | null {
  const inner = nested?.portal ?? null;
  if (portal !== null && inner !== null && portal !== inner) return null;
  return portal ?? inner ?? true;
}

interface Issues {
  readonly issues: { push(issue: { code: "custom"; path: string[]; message: string; input: unknown }): void };
}

function withPortal<T extends PortalFlags>(
  value: T,
  context: Issues,
): Omit<T, "portal"> & { portal: boolean } {
  const portal = portalOf(value);
  if (portal === null)
    context.issues.push({
      code: "custom",
      path: ["portal"],
      message: "differs from quota.portal; give it once",
      input: value.portal,
    });
  return { ...value, portal: portal ?? true };
}

const globalPolicy = strict(block(POLICY)).transform(withPortal);

const devicePolicy = strict(
  block({ ...POLICY, mac: maybe(mac()), "source-cidrs": list(network()).default([]) }),
).transform((value, context) => {
  return withPortal(value, context);
});

const rulePolicy = strict(
  block({ ...POLICY, type: name(), payload: text().default(""), target: name() }),
).transform(withPortal);

const targetPolicy = strict(
  block({ ...POLICY, kind: choice(["proxy", "group"], { fold: true }), target: name() }),
).transform(withPortal);

const retention = (value: string) => duration("1d", "3650d").default(parseDurationMs(value) as number);

export const trafficControl = strict(
  block({
    enabled: flag().default(false),
    "device-identity": choice(["address", "neighbour"]).default("address"),
    leases: list(filePath()).default([]),
    store: filePath().default("traffic-control.db"),
    "checkpoint-interval": duration("1m", "1h").default(300_000),
    "max-store-size": storeSize().default(64 * MIB),
    portal: strict(block({ listen: maybe(hostPort()), url: maybe(httpUrl()) })).prefault({}),
    reports: strict(
      block({
        enabled: flag().default(true),
        "hourly-retention": retention("31d"),
        "daily-retention": retention("397d"),
        "monthly-retention": retention("397d"),
        "orphan-retention": retention("90d"),
        "time-zone": maybe(timeZone()),
      }),
    ).prefault({}),
    global: maybe(globalPolicy),
    devices: list(devicePolicy).default([]),
    rules: list(rulePolicy).default([]),
    targets: list(targetPolicy).default([]),
  }),
).transform((value, context) => {
  const { reports, portal, checkpointInterval, maxStoreSize, ...rest } = value;
  const issue = (path: (string | number)[], message: string) =>
    context.issues.push({ code: "custom", path, message, input: value });
  const count =
    (value.global === null ? 0 : 1) + value.devices.length + value.rules.length + value.targets.length;
  if (count > MOST_POLICIES) issue([], `at most ${MOST_POLICIES} policies are allowed, got ${count}`);
  if (value.leases.length > MOST_LEASES) issue(["leases"], `at most ${MOST_LEASES} files are read`);
  for (const [at, { mac: address, sourceCidrs }] of value.devices.entries()) {
    const fault = sourceFault(value.deviceIdentity, address, sourceCidrs.length);
    if (fault !== null) issue(["devices", at, "source-cidrs"], fault);
  }
  const ids = new Set<string>();
  for (const [path, id] of idsOf(value)) {
    if (ids.has(id)) issue(path, `policy id ${JSON.stringify(id)} is used twice`);
    ids.add(id);
  }
  const host = portal.listen?.host;
  if (portal.listen !== null && portal.url === null && ["", ANY_V4, ANY_V6].includes(host ?? ""))
    issue(["portal", "url"], "is required where portal.listen is not one address: a link needs a host");
  return {
    ...rest,
    checkpointIntervalMs: checkpointInterval,
    maxStoreSizeBytes: maxStoreSize,
    portal: { listen: portal.listen, url: portal.url === null ? null : trimEndOf(portal.url, "/") },
    reports: {
      enabled: reports.enabled,
      hourlyRetentionMs: reports.hourlyRetention,
      dailyRetentionMs: reports.dailyRetention,
      monthlyRetentionMs: reports.monthlyRetention,
      orphanRetentionMs: reports.orphanRetention,
      timeZone: reports.timeZone,
    },
  };
});

function sourceFault(identity: string, address: string | null, networks: number): string | null {
  if (networks > 0) return null;
  if (identity === "neighbour") return address === null ? "is required where there is no mac" : null;
  return address === null
    ? "is required: a device is matched by source address"
    : "is required: a device is matched by source address, its MAC only names it; device-identity: neighbour finds it by MAC";
}

interface HasId {
  readonly id: string | null;
}

interface PolicyLists {
  readonly global: HasId | null;
  readonly devices: readonly HasId[];
  readonly rules: readonly HasId[];
  readonly targets: readonly HasId[];
}

function idsOf(lists: PolicyLists): readonly (readonly [path: (string | number)[], id: string])[] {
  const found: [(string | number)[], string][] = [];
  if (lists.global !== null) found.push([["global", "id"], lists.global.id ?? "global"]);
  for (const key of ["devices", "rules", "targets"] as const)
    for (const [at, { id }] of lists[key].entries()) if (id !== null) found.push([[key, at, "id"], id]);
  return found;
}
