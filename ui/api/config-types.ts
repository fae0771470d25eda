/** The configuration file as the API answers: only what the dashboard reads. */

export interface ConfigVersion {
  readonly id: number;
  readonly size_bytes: number;
  /** Unix seconds. */
  readonly written_at: number;
}

/** Sensitive: kept while it is looked at. */
export interface ConfigFile {
  readonly file: string;
  readonly text: string;
  /** A change names it. */
  readonly hash: string;
  /** The newest first. */
  readonly versions: readonly ConfigVersion[];
  readonly trial: { readonly text: string; readonly seconds_left: number } | null;
}

export interface Remark {
  readonly severity: "error" | "warning";
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
  readonly path: string;
  readonly message: string;
}
