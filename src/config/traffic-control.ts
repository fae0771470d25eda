import { flag } from "#core/fields.ts";
import * as z from "zod";
import { Context, parseSafely, type Registries } from "./context.ts";
import { Report, type Diagnostic } from "./report.ts";
import { isMapValue } from "./shape.ts";
import type { TrafficControlConfig } from "./sections/index.ts";
import { trafficControl } from "./sections/traffic-control.ts";
import type { SafeFiles } from "#core/files.ts";

/**
 * The block of the file, or the `config` of a PUT. While it is off nothing else in it is checked; the readable part is
 * kept, so that turning it on again restores it.
 */
export function readTrafficControl(value: unknown, context: Context): TrafficControlConfig | null {
  if (value === undefined) return null;
  const off = isMapValue(value) ? parseSafely(z.object({ enabled: flag().default(false) }), value) : null;
  if (off?.issues === null && (off.data as { enabled: boolean }).enabled === false) {
    const kept = parseSafely(trafficControl, value);
    return (kept.issues === null ? kept.data : parseSafely(trafficControl, {}).data) as TrafficControlConfig;
  }
  return context.readStrict(trafficControl, value, ["traffic-control"]);
}

const NO_REGISTRIES: Registries = { protocols: [], groupKinds: [], ruleTypes: [] };
const NOWHERE = { line: 0, column: 0 };

/** The same block as JSON, outside a file: the paths of the diagnostics say where, line and column are 0. */
export function parseTrafficControl(
  value: unknown,
  files: Pick<SafeFiles, "resolve">,
): { readonly config: TrafficControlConfig } | { readonly errors: readonly Diagnostic[] } {
  const report = new Report(() => NOWHERE);
  const config = readTrafficControl(value, new Context(report, NO_REGISTRIES, files));
  if (config !== null && !report.failed) return { config };
  if (!report.failed) report.error(["traffic-control"], "expected a map");
  return { errors: report.errors };
}
