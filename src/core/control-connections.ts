/** Connections and the log as the Controller shows them; part of `control.ts`. */
import type { EndReason } from "./live.ts";
import type { LogEvent, LogLevel } from "./log.ts";
import type { DnsMode } from "./router.ts";
import type { ProcessInfo } from "./rule.ts";
import type { Destination, Ip, Metadata } from "./session.ts";

/** A live session, read at once: a view may change with the session. `metadata` is the same object as long as it lives. */
export interface ConnectionView {
  readonly metadata: Metadata;
  /** As long as this is the same object, `remoteHost` and the counters alone may change; null: everything may. */
  readonly settled: object | null;
  /** What was decided on; before that, what the client asked for. */
  readonly destination: Destination;
  /** "" unless sniffing found a name. */
  readonly sniffedHost: string;
  /** Resolved or literal; null when unknown. */
  readonly destinationIp: Ip | null;
  readonly dnsMode: DnsMode;
  readonly process: ProcessInfo | null;
  /** Peer host or address of the outbound socket, without the port; "" before the dial. */
  readonly remoteHost: string;
  /** Null: never looked up. */
  readonly sourceGeoIp: readonly string[] | null;
  readonly destinationGeoIp: readonly string[] | null;
  readonly sourceAsn: string;
  readonly destinationAsn: string;
  /** From the rule's target down to the leaf, the leaf last. Empty before the decision. */
  readonly chain: readonly string[];
  /** The provider of each element of `chain`, "" where there is none. */
  readonly providerChain: readonly string[];
  /** Null: mode global or direct, no match, or the listener named its target. */
  readonly rule: { readonly apiType: string; readonly payload: string } | null;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

/** One that has ended. Providers of its nodes are not known any more. */
export interface EndedView extends ConnectionView {
  /** Unix ms. */
  readonly endedAtMs: number;
  readonly reason: EndReason;
  /** The error's own words; "": there is none. */
  readonly detail: string;
}

export interface ConnectionsControl {
  readonly size: number;
  /** Iterates the live table in any order; nothing is copied. */
  entries(): Iterable<ConnectionView>;
  /** The last thousand that have ended, the newest first. */
  ended(): Iterable<EndedView>;
  /** Bytes of all sessions since start; never decrease. */
  totals(): { readonly uploadBytes: number; readonly downloadBytes: number };
  /** Closes one; false where there is none. */
  close(id: string): boolean;
  closeAll(): void;
}

export interface LogsControl {
  /**
   * Calls back with every event at `level` or above, whatever the configured level, until disposed. `on` never throws
   * and returns at once. Level `silent` gets no events.
   */
  watch(level: LogLevel, on: (event: LogEvent) => void): Disposable;
  /** The newest `count` of the lines that were printed, at `level` or above, in their order; a bounded number is kept. */
  recent(level: LogLevel, count: number): readonly LogEvent[];
}
