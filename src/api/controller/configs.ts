import { createHash } from "node:crypto";
import { isAbsolute } from "node:path";
import * as z from "zod";
import type { ConfigSource, ConfigsView, Control, JsonValue, TunView } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import { jsonValueOf } from "#api/audit-trail.ts";
import { DONE, route, type Route } from "#api/route.ts";
import { jsonObject, queryOf } from "#api/shapes.ts";
import { changeOf, confirmQuery, done } from "./config-file.ts";
import { hashField } from "./config-file-shapes.ts";
import { configsPatch } from "./configs-patch.ts";
import { configsShape } from "./configs-shape.ts";

const replacement = jsonObject({
  path: z.string().default(""),
  payload: z.string().default(""),
  hash: hashField.optional(),
});

export function configRoutes({ configs, configFile }: Control): readonly Route[] {
  const common = { path: "/configs", slash: true } as const;
  return [
    route({
      ...common,
      method: "GET",
      scope: "read",
      summary: "Running settings, without secrets",
      answer: { status: 200, description: "The settings", schema: configsShape },
      handle: () => configsJson(configs.view()),
    }),
    route({
      ...common,
      method: "PATCH",
      scope: "admin",
      summary: "Change live settings; the file stays as it is",
      body: configsPatch,
      answer: DONE,
      faults: { 500: "It is good but cannot be put in force; everything stays as it was" },
      handle({ body, note }) {
        note({ after: jsonValueOf(body) });
        return configs.patch(body);
      },
    }),
    route({
      ...common,
      method: "PUT",
      scope: "admin",
      summary:
        "Load a configuration: the file in use, another file, or text; with persist=true text that is kept",
      query: queryOf({
        force: z.string().optional(),
        persist: z.string().optional(),
        confirm: confirmQuery,
      }),
      body: replacement,
      answer: DONE,
      faults: { 500: "It is good but cannot be put in force; everything stays as it was" },
      async handle({ body, query, signal, note }) {
        const { payload, hash } = body;
        if (query.persist !== "true") {
          const source = sourceOf(body);
          note({ after: sourceNote(source) });
          return configs.replace(source, { force: query.force === "true" });
        }
        if (payload === "" || body.path !== "" || hash === undefined)
          throw new ApiError(
            400,
            "persist=true takes payload, the text, and hash, that of the file it was made from",
          );
        const kept = await configFile.put(payload, changeOf(hash, query.confirm));
        note({ after: sourceNote({ kind: "payload", text: payload }) });
        done(kept, signal);
        return undefined;
      },
    }),
  ];
}

/** What the audit log says: a configuration holds secrets, its hash tells which one it was. */
function sourceNote(source: ConfigSource): JsonValue {
  if (source.kind !== "payload") return { ...source };
  return { kind: "payload", sha256: createHash("sha256").update(source.text).digest("hex") };
}

function sourceOf({ path, payload }: z.output<typeof replacement>): ConfigSource {
  if (payload !== "") return { kind: "payload", text: payload };
  if (path === "") return { kind: "current" };
  if (!isAbsolute(path)) throw new ApiError(400, `path must be absolute, got ${JSON.stringify(path)}`);
  return { kind: "path", path };
}

/** Legacy inbounds that dashboards expect to find. */
const LEGACY = {
  "tuic-server": { enable: false, listen: "", certificate: "", "private-key": "", "ech-key": "" },
  "ss-config": "",
  "vmess-config": "",
} as const;

function configsJson({ tun, geoxUrl, ...rest }: ConfigsView) {
  return { ...LEGACY, ...kebabKeys(rest), tun: tunJson(tun), "geox-url": kebabKeys(geoxUrl) };
}

function tunJson({ more, ...always }: TunView) {
  const set = Object.entries(more).filter(([, value]) => !isZero(value));
  return { ...kebabKeys(always), ...Object.fromEntries(set) };
}

function isZero(value: unknown): boolean {
  return !value || (Array.isArray(value) && value.length === 0);
}

/** `lanAllowedIps` → `lan-allowed-ips`. */
function kebabKeys(view: object): Record<string, unknown> {
  const kebab = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(view).map(([name, value]) => [kebab(name), value]));
}
