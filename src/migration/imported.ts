/** What is read of another program, before it becomes a configuration and a document of users. */
import type { UserLimits } from "#core/users.ts";
import type { StoredUsage } from "#users/allowance.ts";
import type { Json } from "./json.ts";

export interface ImportedUser {
  /** Where the user stands there, for the report. */
  readonly where: string;
  readonly name: string;
  readonly credential: string;
  readonly flow: string;
  readonly enabled: boolean;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly createdAtMs: number;
  readonly limits: UserLimits;
  /** Of a quota with periods: what was used in the present one. */
  readonly usage: StoredUsage | null;
  /** What its subscription had for a name there: those of one name were one subscription. Absent: it had none. */
  readonly subscription?: string;
}

export interface ImportedListener {
  readonly where: string;
  readonly name: string;
  /** As in files of ours. */
  readonly type: string;
  /** The item of `listeners` without name, type and users. */
  readonly keys: Json;
  /** What users of it have. */
  readonly credential: "uuid" | "password";
  readonly users: readonly ImportedUser[];
  /** It was open there without an account, as those for the own machine are: it stays so without users. */
  readonly isOpen?: boolean;
}

export interface Imported {
  readonly listeners: readonly ImportedListener[];
  /** As in files; the last one is MATCH. */
  readonly rules: readonly string[];
  /** Further keys of the file: nodes, groups, DNS. */
  readonly keys?: Json;
  /** Where subscriptions were found. Absent: there were none. */
  readonly former?: FormerSubscriptions;
}

/** Where users of the other program found their subscriptions. */
export interface FormerSubscriptions {
  /** Begins and ends with a slash; the name follows. */
  readonly paths: readonly { readonly prefix: string; readonly format: "" | "mihomo" }[];
  /** Of signed names: what they were signed with, and since when those of a user count. Absent: names are as they are. */
  readonly signed?: {
    readonly secret: string;
    /** Unix ms, by name. */
    readonly since: ReadonlyMap<string, number>;
  };
}

/** What the other program has and this one does not, each with the place where it stood there. */
export class LeftOut {
  readonly lines: string[] = [];

  add(where: string, what: string): void {
    this.lines.push(`${where}: ${what}`);
  }
}

const LONGEST_SHOWN = 60;

/** A text of the other program as a terminal may show it. */
export function shown(text: string): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?");
  return plain.length > LONGEST_SHOWN ? `${plain.slice(0, LONGEST_SHOWN)}…` : plain;
}
