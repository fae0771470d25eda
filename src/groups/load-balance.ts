/** `load-balance`: spreads sessions over the members that are alive. */
import { createHash } from "node:crypto";
import { getDomain } from "tldts";
import * as z from "zod";
import type { DialError } from "#core/errors.ts";
import { choice } from "#core/fields.ts";
import { groupKind, type GroupEnv } from "#core/group.ts";
import { BOTH_NETWORKS, TCP_ONLY, type Outbound } from "#core/outbound.ts";
import type { Metadata, Network } from "#core/session.ts";
import { HealthCheck } from "./health-check.ts";
import { MemberGroup } from "./member-group.ts";
import { itemAt, oldestKey } from "#lib/at.ts";

/** Picks an index below `count` for a session; asked again with the next `attempt` where that member is dead. */
type Strategy = (metadata: Metadata | null, count: number, attempt: number) => number;

/** Tries of a hash before the first member that is alive is taken. */
const HASH_ATTEMPTS = 5;
const STICKY_MS = 10 * 60_000;
/** Sessions remembered by sticky-sessions; the one remembered longest goes first. */
const STICKY_ENTRIES = 1000;

/** The site of a destination: the registrable domain of a name, else the address. */
function siteOf(metadata: Metadata | null): string {
  if (metadata === null) return "";
  const { host, ip } = metadata.destination;
  return host === null ? (ip ?? "") : (getDomain(host, { allowPrivateDomains: true }) ?? host);
}

function hash32(text: string): number {
  return createHash("md5").update(text).digest().readUInt32BE(0);
}

/** Jump consistent hash (Lamping, Veach 2014): a member more or less moves only its share of the keys. */
export function jumpHash(key: number, buckets: number): number {
  let state = BigInt(key);
  let bucket = -1;
  let next = 0;
  while (next < buckets) {
    bucket = next;
    state = (state * 2862933555777941757n + 1n) & 0xffff_ffff_ffff_ffffn;
    next = Math.floor((bucket + 1) * (2147483648 / (Number(state >> 33n) + 1)));
  }
  return bucket;
}

function consistentHashing(): Strategy {
  return (metadata, count, attempt) => jumpHash((hash32(siteOf(metadata)) + attempt) >>> 0, count);
}

function roundRobin(): Strategy {
  let turn = -1;
  return (metadata, count) => {
    if (metadata !== null) turn++; // looking at the group is no use of it
    return Math.max(0, turn) % count;
  };
}

function stickySessions(nowMs: () => number = () => performance.now()): Strategy {
  const remembered = new Map<string, { readonly index: number; readonly atMs: number }>();
  return (metadata, count, attempt) => {
    const key = `${metadata?.source.ip ?? ""} ${siteOf(metadata)}`;
    const known = remembered.get(key);
    if (attempt === 0 && known !== undefined && nowMs() - known.atMs < STICKY_MS && known.index < count)
      return known.index;
    const index = jumpHash((hash32(key) + attempt) >>> 0, count);
    remembered.delete(key);
    remembered.set(key, { index, atMs: nowMs() });
    if (remembered.size > STICKY_ENTRIES) remembered.delete(oldestKey(remembered));
    return index;
  };
}

class LoadBalanceGroup extends MemberGroup {
  readonly type = "LoadBalance";
  readonly spreads = true;
  readonly #strategy: Strategy;
  readonly #health: HealthCheck;
  #counted: readonly Outbound[] | null = null;
  #turns: readonly Outbound[] = [];

  constructor(strategy: Strategy, env: GroupEnv) {
    super(env);
    this.#strategy = strategy;
    this.#health = new HealthCheck(env);
  }

  /** Datagrams go to members that carry them, and so does the rule: as long as one of them does. */
  override get networks(): ReadonlySet<Network> {
    return !this.disablesUdp && this.members.some(carriesUdp) ? BOTH_NETWORKS : TCP_ONLY;
  }

  pick(metadata: Metadata | null): Outbound {
    if (metadata !== null) this.#health.touch();
    const members = this.members;
    const turns = this.#turnsOf(members);
    const tries = Math.max(HASH_ATTEMPTS, turns.length);
    for (let attempt = 0; attempt < tries; attempt++) {
      const member = itemAt(turns, this.#strategy(metadata, turns.length, attempt));
      if (this.#isFit(member, metadata)) return member;
    }
    return (
      members.find((member) => this.#isFit(member, metadata)) ??
      (metadata?.network === "udp" ? members.find(carriesUdp) : undefined) ??
      itemAt(members, 0)
    );
  }

  override dialled(failure: DialError | null): void {
    this.#health.dialled(failure);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.#health[Symbol.asyncDispose]();
  }

  /** A member that `proxies` has twice gets twice the share. */
  #turnsOf(members: readonly Outbound[]): readonly Outbound[] {
    if (members !== this.#counted) {
      const { timesListed } = this.env;
      this.#counted = members;
      this.#turns = members.flatMap((member) =>
        Array.from({ length: timesListed.get(member.name) ?? 1 }, () => member),
      );
    }
    return this.#turns;
  }

  #isFit(member: Outbound, metadata: Metadata | null): boolean {
    if (metadata?.network === "udp" && !carriesUdp(member)) return false;
    return this.env.health.delays.for(member.name, this.env.settings.url).alive;
  }
}

function carriesUdp({ networks }: Outbound): boolean {
  return networks.has("udp");
}

const STRATEGIES = {
  "consistent-hashing": consistentHashing,
  "round-robin": roundRobin,
  "sticky-sessions": stickySessions,
} as const;

export const loadBalance = groupKind(
  { type: "load-balance", apiType: "LoadBalance" },
  z.object({
    strategy: choice(["consistent-hashing", "round-robin", "sticky-sessions"]).default("consistent-hashing"),
  }),
  ({ strategy }, env) => Promise.resolve(new LoadBalanceGroup(STRATEGIES[strategy](), env)),
);
