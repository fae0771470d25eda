/**
 * How many runs a property has: `full`, but in `npm run check` a tenth, at least twenty, for an answer within seconds.
 * Only what asks for it (`WEIR_QUICK_CHECK=1`) gets fewer; `npm test` never does.
 */
export function runs(full: number): number {
  return process.env.WEIR_QUICK_CHECK === "1" ? Math.min(full, Math.max(20, Math.ceil(full / 10))) : full;
}

/** Why a test with an input of megabytes or thousands of rounds is skipped: in `npm run check` only; false elsewhere. */
export const skipLarge: string | false =
  process.env.WEIR_QUICK_CHECK === "1" && "its input is large: npm test runs it";
