/** Rules and their providers as the Controller shows and changes them; part of `control.ts`. */

export interface RuleView {
  readonly index: number;
  /** API spelling: `DomainSuffix`. */
  readonly type: string;
  readonly payload: string;
  readonly target: string;
  /** Number of records of a GEOIP or GEOSITE rule; -1 for every other. */
  readonly size: number;
  readonly disabled: boolean;
  /** Why it matches nothing: `database missing`; null: it can match. */
  readonly unavailable: string | null;
  readonly hits: number;
  /** 0: never. */
  readonly lastHitAtMs: number;
  readonly misses: number;
  /** 0: never. */
  readonly lastMissAtMs: number;
}

/** What would happen to a session: asked by people who wonder why. */
export interface ExplainQuestion {
  readonly network: "tcp" | "udp";
  /** A name, an address literal, `host:port` or a URL. */
  readonly destination: string;
  /** Where the destination says none; null: as its URL's scheme says, or 443. */
  readonly port: number | null;
  readonly source: string | null;
  readonly inbound: string | null;
}

export interface ExplainView {
  /** What was asked, as it was understood. */
  readonly question: string;
  /** The rules that were looked at, in order; the last one decided where its verdict is `yes`. */
  readonly steps: readonly {
    readonly index: number;
    readonly type: string;
    readonly payload: string;
    readonly target: string;
    readonly verdict: "yes" | "no" | "unknown";
    /** One sentence. */
    readonly note: string;
  }[];
  /** From the rule's target down to the leaf. */
  readonly chain: readonly string[];
}

export interface RulesControl {
  /** In file order; each is made when it is read. */
  list(): Iterable<RuleView>;
  /** True: the rule never matches. Indexes out of range are ignored. Not persistent; a reload clears it. */
  disable(changes: ReadonlyMap<number, boolean>): void;
  /** `ApiError` 400 where the question cannot be understood. */
  explain(question: ExplainQuestion): Promise<ExplainView>;
}

export interface RuleProviderView {
  readonly name: string;
  readonly behavior: "Domain" | "IPCIDR" | "Classical";
  /** "" for inline. */
  readonly format: "YamlRule" | "TextRule" | "MrsRule" | "";
  readonly vehicleType: "HTTP" | "File" | "Inline";
  readonly ruleCount: number;
  /** Null: never. */
  readonly updatedAtMs: number | null;
  /** Inline only. */
  readonly payload: readonly string[] | null;
}

export interface RuleProvidersControl {
  list(): readonly RuleProviderView[];
  get(name: string): RuleProviderView | null;
  /** Loads anew. Any failure is an `ApiError` 503. */
  update(name: string): Promise<void>;
}
