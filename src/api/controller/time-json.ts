/** RFC 3339 as the ecosystem prints it: a fraction only where there is one. */
export function timeJson(atMs: number): string {
  return new Date(atMs).toISOString().replace(".000Z", "Z");
}

/** The zero time of the ecosystem means never. */
export function updatedAtJson(atMs: number | null): string {
  return atMs === null ? "0001-01-01T00:00:00Z" : timeJson(atMs);
}
