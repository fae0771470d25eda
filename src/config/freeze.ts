/** Freezes maps and lists of plain data all the way down; instances (bytes, registries' schemas, ES maps) stay as they are. */
export function freezePlain<T>(value: T): T {
  freeze(value, 0);
  return value;
}

/** Registry entries are shared with the program and not the configuration's to freeze. */
const NOT_OURS = new Set(["protocol", "kind"]);
const DEEPEST = 32;

function freeze(value: unknown, depth: number): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value) || depth > DEEPEST) return;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (value instanceof Map) for (const item of value.values()) freeze(item, depth + 1);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return;
  if ("parse" in value && typeof value.parse === "function") return; // a rule type
  Object.freeze(value);
  for (const key in value) if (!NOT_OURS.has(key)) freeze(value[key as keyof typeof value], depth + 1);
}
