/** A governed ledger without sockets: a clock that a test turns, policies as settings, sessions as facts. */
import { NO_LEASES, NO_NEIGHBOURS } from "./no-neighbours.ts";
import { SILENT } from "#core/log.ts";
import type { Meter } from "#core/meter.ts";
import type { Outbound } from "#core/outbound.ts";
import type { Rule } from "#core/rule.ts";
import type { Ip } from "#core/session.ts";
import type { GovernanceClock } from "#governance/clock.ts";
import { Governance } from "#governance/governance.ts";
import { GovernedLedger } from "#governance/ledger.ts";
import type { GovernanceSettings, PolicySettings } from "#governance/settings.ts";
import { MemoryStore, type StoreFile } from "#governance/store.ts";
import { parseCidr, type Cidr } from "#net/address/cidr.ts";
import { decisionOf, metadataOf } from "./metadata.ts";

export class TurnedClock implements GovernanceClock {
  monotonic = 0;
  /** Of the machine; what it slept besides is in `slept`. */
  bootId = "first";
  slept = 0;
  readonly boot: GovernanceClock["boot"];
  wall: number;
  constructor(wallSeconds = 1_785_312_000) {
    this.wall = wallSeconds * 1000;
    const idOf = (): string => this.bootId;
    this.boot = {
      get id() {
        return idOf();
      },
      nowMs: () => this.monotonic + this.slept,
    };
  }
  monotonicMs(): number {
    return this.monotonic;
  }
  wallMs(): number {
    return this.wall;
  }
  pass(seconds: number): void {
    this.monotonic += seconds * 1000;
    this.wall += seconds * 1000;
  }
}

export const policy = (values: Partial<PolicySettings> = {}): PolicySettings => ({
  id: null,
  name: "",
  enabled: true,
  uploadBps: 0,
  downloadBps: 0,
  quota: null,
  portal: true,
  ...values,
});

export const cidr = (text: string): Cidr => parseCidr(text) as Cidr;

const DAY_MS = 86_400_000;

export const settings = (values: Partial<GovernanceSettings> = {}): GovernanceSettings => ({
  enabled: true,
  deviceIdentity: "address",
  leases: [],
  store: "traffic-control.db",
  checkpointIntervalMs: 300_000,
  maxStoreSizeBytes: 64 * 1024 * 1024,
  portal: { listen: null, url: null },
  reports: {
    enabled: true,
    hourlyRetentionMs: 31 * DAY_MS,
    dailyRetentionMs: 397 * DAY_MS,
    monthlyRetentionMs: 397 * DAY_MS,
    orphanRetentionMs: 90 * DAY_MS,
    timeZone: null,
  },
  global: null,
  devices: [],
  rules: [],
  targets: [],
  ...values,
});

export interface Governed {
  readonly clock: TurnedClock;
  readonly ledger: GovernedLedger;
  readonly governance: Governance;
  readonly store: MemoryStore;
  apply(next: GovernanceSettings | null): Promise<void>;
  session(facts?: SessionFacts): Meter;
}

export interface SessionFacts {
  readonly ip?: string;
  readonly rule?: Pick<Rule, "type" | "payload" | "target"> | null;
  /** The SUB-RULE that led to `rule`. */
  readonly entered?: Pick<Rule, "type" | "payload" | "target">;
  readonly chain?: readonly string[];
}

/** `store` as another one left it: what a restart finds. `sizeBytes` is what the file is said to have. */
export function governed(
  clock = new TurnedClock(),
  store = new MemoryStore(),
  sizeBytes: (store: MemoryStore) => number = () => 0,
  neighbours = NO_NEIGHBOURS,
): Governed {
  const ledger = new GovernedLedger(clock);
  const open = async () => ({ store, records: store.records });
  const governance = governanceWith(ledger, { open, sizeBytes: () => sizeBytes(store) }, neighbours);
  return {
    clock,
    ledger,
    governance,
    store,
    apply: async (next) => (await governance.prepare(next, { tolerant: false })).activate(),
    session({ ip = "192.0.2.1", rule = null, entered, chain = ["DIRECT"] } = {}) {
      const to = { host: "origin.example", ip: null, port: 443 };
      const metadata = { ...metadataOf(to), source: { ip: ip as Ip, port: 1 } };
      const matcher = { reads: [], match: () => true };
      const full = rule === null ? null : { index: 0, apiType: "", matcher, ...rule };
      const led = entered === undefined ? {} : { entered: { index: 0, apiType: "", matcher, ...entered } };
      return ledger.open(metadata, {
        ...decisionOf({ name: "DIRECT" } as Outbound, to, full),
        ...led,
        chain,
      });
    },
  };
}

/** Every store of it is this file. */
export const governanceWith = (
  ledger: GovernedLedger,
  file: StoreFile,
  neighbours = NO_NEIGHBOURS,
): Governance =>
  new Governance({
    ledger,
    log: SILENT,
    storeFile: (key) => ({ key, file }),
    neighbours,
    leases: NO_LEASES,
  });
