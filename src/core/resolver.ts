import type { Ip } from "./session.ts";

export interface Answer {
  readonly ip: Ip;
  readonly ttlMs: number;
}

export interface LookupOptions {
  /** Absent: both families, IPv4 first. */
  readonly family?: 4 | 6;
  readonly signal: AbortSignal;
}

/** Gives literal addresses. Throws `DialError("resolve")` where there is none; never returns an empty list. */
export interface Resolver {
  lookup(host: string, options: LookupOptions): Promise<readonly Answer[]>;
}
