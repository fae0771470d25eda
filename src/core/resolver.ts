import type { Ip } from "./endpoint.ts";

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
  /**
   * The ECHConfigList that the HTTPS records of a name have (RFC 9460 §14.3.2, the parameter `ech`); null: they have none,
   * or there are none. Throws `DialError("resolve")` where the question is not answered. Absent: only addresses are
   * looked up here.
   */
  echConfigs?(host: string, signal: AbortSignal): Promise<Buffer | null>;
  /** Absent: what it knows is not shared with other threads. */
  readonly shared?: SharedResolver;
}

/** A resolver whose answers other threads find in a shared table. */
export interface SharedResolver {
  /** By which the table tells its answers from those of others. */
  readonly number: number;
  /** False: it looks up no IPv6 addresses. */
  readonly ipv6: boolean;
}
