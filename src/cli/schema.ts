import { configSchema } from "#config/schema.ts";
import { REGISTRIES } from "./parse-env.ts";

/** `weir schema`: the JSON Schema of the configuration, made from what reads it. */
export function schema(): number {
  process.stdout.write(`${JSON.stringify(configSchema(REGISTRIES), null, 2)}\n`);
  return 0;
}
