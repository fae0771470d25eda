import type { z } from "zod";

/** Marks a block of which an unknown key is an error, not a warning: a misspelt limit must not vanish. */
export function strict<S extends z.ZodType>(schema: S): S {
  return schema.meta({ "x-weir-strict": true }) as S;
}

export function isStrict(schema: z.ZodType): boolean {
  return schema.meta()?.["x-weir-strict"] === true;
}
