/** The JSON Schema of the file, made from the definitions that check it. */
import * as z from "zod";
import { describeSchema } from "./describe-schema.ts";
import { groupFields } from "./group-fields.ts";
import { joined } from "./items.ts";
import type { Registries } from "./context.ts";
import { FOREIGN_LISTENER_TYPES, FOREIGN_PROXY_TYPES } from "./known-types.ts";
import { listenerFields } from "./listener-fields.ts";
import { proxyFields } from "./proxy-fields.ts";
import { TOP_LEVEL } from "./sections/index.ts";
import { tunListenerFields } from "./tun-listeners.ts";

/** Draft 2020-12. Proxies, listeners and groups are discriminated by `type`. */
export function configSchema({ protocols, groupKinds }: Registries): z.core.JSONSchema.BaseSchema {
  const outbound = protocols.flatMap(({ type, outbound: side }) =>
    side === undefined ? [] : [[type, side.schema] as const],
  );
  const inbound = protocols.flatMap(({ type, inbound: side }) =>
    side === undefined ? [] : [[type, side.schema] as const],
  );
  inbound.push(["tun", tunListenerFields]);
  const kinds = groupKinds.map(({ type, schema }) => [type, schema] as const);
  const root = z.object({
    ...TOP_LEVEL,
    proxies: z.array(variants(proxyFields, outbound, FOREIGN_PROXY_TYPES)),
    listeners: z.array(variants(listenerFields, inbound, FOREIGN_LISTENER_TYPES)),
    "proxy-groups": z.array(variants(groupFields, kinds, [])),
  });
  const schema = z.toJSONSchema(root.partial(), { io: "input", unrepresentable: "any", override });
  describeSchema(schema, new Map(protocols.map(({ type, descriptions = {} }) => [type, descriptions])));
  return { title: "weir configuration", ...schema };
}

/** One branch a type that is built in, and one for the words that are only known. */
function variants(
  common: z.ZodObject,
  own: readonly (readonly [type: string, schema: z.ZodObject])[],
  known: readonly string[],
): z.ZodType {
  const branches: z.ZodType[] = own.map(([type, schema]) =>
    joined(common, schema).extend({ type: z.literal(type) }),
  );
  const others = known.filter((word) => own.every(([type]) => type !== word));
  if (others.length > 0) branches.push(z.looseObject(common.shape).extend({ type: z.enum(others) }));
  return branches.length === 0 ? z.looseObject(common.shape) : z.union(branches);
}

interface Node {
  readonly zodSchema: z.core.$ZodTypes;
  readonly jsonSchema: z.core.JSONSchema.BaseSchema;
}

/** What a file may say beyond the plain type, and which keys it cannot leave out. */
function override({ zodSchema, jsonSchema }: Node): void {
  const { def } = zodSchema._zod;
  if (def.type === "object") {
    const required = Object.entries(def.shape).flatMap(([key, item]) => (isRequired(item) ? [key] : []));
    delete jsonSchema.required;
    if (required.length > 0) jsonSchema.required = required;
  }
  // A list of one may be written without brackets.
  if (def.type === "pipe" && def.in._zod.def.type === "transform" && jsonSchema.type === "array") {
    const { items } = jsonSchema;
    const whole = { ...jsonSchema };
    for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
    jsonSchema.anyOf = typeof items === "object" && !Array.isArray(items) ? [whole, items] : [whole];
  }
  if (def.type === "transform") widenScalar(jsonSchema);
  if (def.type === "default" && isPlain(def.defaultValue)) jsonSchema.default = def.defaultValue;
}

/** What a file could hold as it is; other defaults are what a reader makes of a text. */
function isPlain(value: unknown): value is string | number | boolean | string[] {
  if (Array.isArray(value)) return value.every((item) => typeof item === "string");
  return ["string", "number", "boolean"].includes(typeof value);
}

/** YAML reads `secret: 123` as a number and `port: "80"` as text; both are fine where the other is meant. */
function widenScalar(jsonSchema: z.core.JSONSchema.BaseSchema): void {
  const { type } = jsonSchema;
  if (type === "string" && jsonSchema.enum === undefined)
    Object.assign(jsonSchema, { type: ["string", "number", "boolean", "null"] });
  else if (type === "integer") Object.assign(jsonSchema, { type: ["integer", "string", "boolean", "null"] });
  else if (type === "boolean") Object.assign(jsonSchema, { type: ["boolean", "integer", "string", "null"] });
}

function isRequired(item: z.core.$ZodType): boolean {
  const { def } = (item as z.core.$ZodTypes)._zod;
  if (def.type === "optional" || def.type === "default" || def.type === "prefault") return false;
  if (def.type === "pipe") return isRequired(def.in._zod.def.type === "transform" ? def.out : def.in);
  return true;
}
