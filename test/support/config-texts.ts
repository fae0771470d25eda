/** Configurations written out in tests, and what the parser says of them. */
import assert from "node:assert/strict";
import type { Config } from "#config/config.ts";
import { parseConfig } from "#config/parse.ts";
import { formatDiagnostic } from "#config/report.ts";
import { testEnv } from "./config-env.ts";

export function good(text: string): Config {
  const { config, errors } = parseConfig(text, testEnv());
  assert.deepEqual(errors?.map((error) => formatDiagnostic("c.yaml", error)) ?? [], []);
  return config as Config;
}

/** `line:column path: message` of every error. */
export function errorsOf(text: string): readonly string[] {
  return (parseConfig(text, testEnv()).errors ?? []).map((error) => formatDiagnostic("c", error).slice(2));
}

/** `path message` of every error. */
export function pathErrorsOf(text: string): readonly string[] {
  return (parseConfig(text, testEnv()).errors ?? []).map(({ path, message }) => `${path} ${message}`);
}

export function warningsOf(text: string): readonly string[] {
  return parseConfig(text, testEnv()).warnings.map((warning) => formatDiagnostic("c", warning).slice(2));
}

/** One proxy, one group, with these fields. */
export const proxy = (fields: string) => `proxies:\n  - {${fields}}\n`;
export const socks = "type: socks5, server: s, port: 1";
export const group = (fields: string) => `proxy-groups:\n  - {${fields}}\n`;
