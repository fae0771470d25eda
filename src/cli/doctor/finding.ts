/** What `weir doctor` says of one thing. */
export interface Finding {
  /** What was looked at. */
  readonly what: string;
  readonly level: "ok" | "warning" | "error";
  readonly found: string;
  /** Of a warning or an error: what follows from it. */
  readonly meaning?: string;
  /** Of a warning or an error: what to do. */
  readonly advice?: string;
}

export const fine = (what: string, found: string): Finding => ({ what, level: "ok", found });

export const bad = (
  level: "warning" | "error",
  what: string,
  found: string,
  [meaning, advice]: readonly [meaning: string, advice: string],
): Finding => ({ what, level, found, meaning, advice });
