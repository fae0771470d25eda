/** DNS, caches and the storage of dashboards as the Controller uses them; part of `control.ts`. */

export interface DnsRecordView {
  /** Fully qualified, with the last dot. */
  readonly name: string;
  readonly type: number;
  readonly ttlSeconds: number;
  /** Presentation form. */
  readonly data: string;
}

export interface DnsAnswerView {
  readonly status: number;
  readonly truncated: boolean;
  readonly recursionDesired: boolean;
  readonly recursionAvailable: boolean;
  readonly authenticData: boolean;
  readonly checkingDisabled: boolean;
  readonly answers: readonly DnsRecordView[];
  readonly authority: readonly DnsRecordView[];
  readonly additional: readonly DnsRecordView[];
}

export interface DnsControl {
  /** The `dns` section is switched on. */
  readonly enabled: boolean;
  /** By the resolver only: no hosts, no fake-IP. `name` ends with a dot. Throws where upstreams fail. */
  query(name: string, type: number, signal: AbortSignal): Promise<DnsAnswerView>;
  /** A DNS message in wire form through the full chain (hosts, fake-IP, mapping). Throws `ProtocolError` on nonsense. */
  exchange(message: Uint8Array): Promise<DnsExchangeView>;
}

export interface DnsExchangeView {
  /** In wire form. */
  readonly message: Uint8Array;
  /** How long it may be kept: the smallest TTL. */
  readonly ttlSeconds: number;
}

export interface CachesControl {
  /** Does nothing without fake-IP. Throws `StoreError`. */
  flushFakeIp(): Promise<void>;
  flushDns(): void;
}

/** A free key-value area of dashboards, kept in the cache file. Values are JSON text of at most 1 MiB. */
export interface StorageControl {
  get(key: string): string | null;
  /** Throws `ApiError` 413 where the area is full. */
  put(key: string, json: string): Promise<void>;
  delete(key: string): Promise<void>;
}
