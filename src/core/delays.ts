/** Results of delay tests: measurements, kept by name across reloads. */
export interface DelaySample {
  readonly atMs: number;
  /** 0: the test failed. */
  readonly delayMs: number;
}

export interface DelayState {
  /** Result of the last test; true before any. */
  readonly alive: boolean;
  /** At most 10, oldest first. */
  readonly history: readonly DelaySample[];
}

export interface Delays {
  /** Grows with every result. */
  readonly revision: number;
  /** Of all tests of the node, whatever the URL. */
  of(node: string): DelayState;
  /** Of the tests with this URL. */
  for(node: string, url: string): DelayState;
  /** By test URL. */
  urlsOf(node: string): ReadonlyMap<string, DelayState>;
  /** The tests of a group are through, by which it picks. */
  settled(): void;
  /** `delayMs` 0 is a failure; `accepted` false marks the URL as not alive although the node answered. */
  record(node: string, url: string, delayMs: number, accepted: boolean): void;
}
