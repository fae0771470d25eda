/** The types of a traffic-control policy for other folders. A policy never means a proxy group here. */
import type { Direction } from "./meter.ts";
import type { Decision } from "./router.ts";
import type { Metadata } from "./session.ts";

export const DIMENSIONS = ["global", "device", "rule", "target"] as const;
export type Dimension = (typeof DIMENSIONS)[number];

/** A rolling quota. Bytes; 0 is no cap. Rates in bit/s; 0 adds no limit while over. */
export interface QuotaLimits {
  readonly totalBytes: number;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly windowSeconds: number;
  readonly overage: Readonly<Record<Direction, number>>;
}

/** One policy of a book; immutable. Its counters and its generation live elsewhere and outlast it. */
export interface Policy {
  /** Unique in its book, across all dimensions. */
  readonly id: string;
  readonly dimension: Dimension;
  /** What its history belongs to: the rule's signature, the device's MAC, the target; equal identity, same history. */
  readonly identity: string;
  readonly name: string;
  /** bit/s; 0: no limit. */
  readonly bitsPerSecond: Readonly<Record<Direction, number>>;
  readonly quota: QuotaLimits | null;
  /** Over quota, a new plain-HTTP connection is led to the portal. */
  readonly portal: boolean;
}

/** Immutable: a change is a new book. `select` answers with the enabled policies that apply, in configured order. */
export interface PolicyBook {
  readonly policies: readonly Policy[];
  select(metadata: Metadata, decision: Decision): readonly Policy[];
}
