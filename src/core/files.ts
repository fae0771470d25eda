/**
 * Files that a configuration names. Every path is resolved against the home directory and must really (symbolic links
 * followed) lie inside it or inside one of the safe paths.
 */
export interface SafeFiles {
  /** The absolute path; throws `ConfigError` naming the path and the allowed folders where it lies outside. */
  resolve(path: string): string;
  /** PEM text is returned as it is; anything else is read as a path. Throws `ConfigError`. */
  readPem(textOrPath: string): Promise<string>;
  /** Calls back with the new text whenever the file changes to something readable; PEM text never changes. */
  watchPem(textOrPath: string, on: (pem: string) => void): Disposable;
}

/** Is this PEM text itself, not the path of a file that holds it? */
export function isPemText(textOrPath: string): boolean {
  return textOrPath.includes("-----BEGIN ");
}

/** The file with this behind the name of `svc.store` has tokens and the audit log. */
export const JOURNAL_SUFFIX = ".journal";

export type WrittenKind = "users" | "journal" | "policies" | "download" | "folder";

/** What is known of the files that weir writes, besides what a configuration says. Nothing here changes a file. */
export interface FileGuard {
  /** Files that are there in any case, absolute, with what messages call them. */
  readonly known: readonly { readonly title: string; readonly file: string }[];
  /** Every absolute path that a store at this one may write. */
  pathsOfStore(path: string): readonly string[];
  /** Why weir may not write there, because of what is there already; null: it may. */
  fault(kind: WrittenKind, path: string): string | null;
}
