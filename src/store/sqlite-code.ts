/** SQLite's extended code of an error (https://sqlite.org/rescode.html); 0: the error is none of SQLite's. */
export function sqliteCodeOf(error: unknown): number {
  if (typeof error !== "object" || error === null || !("errcode" in error)) return 0;
  return typeof error.errcode === "number" ? error.errcode : 0;
}
