import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Config } from "#config/config.ts";

declare const WEIR_BUILD: string | undefined;

/** The built-in dashboard's files: beside the bundle in a build, where `scripts/ui.mjs` puts them in a checkout. */
export function builtInUiFolder(): string {
  const location = typeof WEIR_BUILD === "string" ? "./ui/" : "../../node_modules/.cache/weir-ui/";
  return fileURLToPath(new URL(location, import.meta.url));
}

/** Absolute path of the dashboard that the configuration names; null: none. Safe paths were checked while parsing. */
export function externalUiFolder(
  { controller: { externalUi, externalUiName } }: Pick<Config, "controller">,
  home: string,
): string | null {
  return externalUi === "" ? null : resolve(home, externalUi, externalUiName);
}
