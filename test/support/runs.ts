/**
 * How many runs a property has: `full`, but in `npm run check` a tenth, at least `least`, for an answer within seconds.
 * Only what asks for it (`WEIR_QUICK_CHECK=1`) gets fewer; `npm test` never does. `least`: fewer than twenty where one run
 * takes long and several properties share their cases.
 */
export function runs(full: number, least = 20): number {
  return process.env.WEIR_QUICK_CHECK === "1" ? Math.min(full, Math.max(least, Math.ceil(full / 10))) : full;
}

/**
 * Why a test with an input of megabytes, thousands of rounds or a slow cipher is skipped: in `npm run check` only; false
 * elsewhere.
 */
export const skipLarge: string | false =
  process.env.WEIR_QUICK_CHECK === "1" && "its input is large or its cipher slow: npm test runs it";
