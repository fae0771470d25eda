import type { JSONSchema } from "zod/v4/core";
import type { Descriptions } from "#core/key-descriptions.ts";
import { describeKey } from "./descriptions/index.ts";

type Schema = JSONSchema.BaseSchema;

/** Puts into every property what its key means, and an example. `own`: descriptions of each protocol, by its type. */
export function describeSchema(schema: Schema, own: ReadonlyMap<string, Descriptions>): void {
  describe(schema, [], {});

  function describe(part: Schema, path: readonly string[], descriptions: Descriptions): void {
    const type = isSchema(part.properties?.["type"]) ? part.properties["type"].const : undefined;
    const mine = (typeof type === "string" ? own.get(type) : undefined) ?? descriptions;
    for (const [key, property] of Object.entries(part.properties ?? {})) {
      if (!isSchema(property)) continue;
      const below = [...path, key];
      // What a file holds below is described first: a description belongs to the property, not to a shape inside it.
      describe(property, below, mine);
      const found = describeKey(below, mine);
      if (found === null) continue;
      property.description = found.text;
      if (found.example !== undefined) property.examples = [found.example];
    }
    for (const item of [part.items].flat()) if (isSchema(item)) describe(item, path, mine);
    if (isSchema(part.additionalProperties)) describe(part.additionalProperties, [...path, "*"], mine);
    for (const branch of [...(part.anyOf ?? []), ...(part.oneOf ?? []), ...(part.allOf ?? [])])
      if (isSchema(branch)) describe(branch, path, mine);
  }
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
