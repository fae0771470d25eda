/** Numbers that other logins have written, as parts of statements that no number makes fail. */

/** What JavaScript and JSON hold exactly: sums end here. */
export const MOST = "9007199254740991";

/** An expression of bigint or numeric, of which sums may be made without an overflow: 0 to 2^53-1. */
export function summed(expression: string): string {
  return `least(greatest(${expression}, 0), ${MOST})::bigint`;
}

/** Of two such: what is in a column may come from before version 7. */
export function sumOfTwo(column: string, added: string): string {
  return summed(`least(${column}, ${MOST}) + ${added}`);
}

/** A member of a JSON document as a count; 0 where it is none. */
export function counted(json: string, most = MOST): string {
  return `CASE jsonb_typeof(${json}) WHEN 'number' THEN least(greatest((${json})::numeric, 0), ${most})::bigint ELSE 0 END`;
}
