/** Bodies and answers of the routes about the configuration file. */
import * as z from "zod";
import type { JsonValue } from "#core/control.ts";
import { jsonObject } from "#api/shapes.ts";

const step = z.union([z.string().max(1024), z.int().min(0)]);
const path = z.array(step).min(1).max(16);
const place = { before: step.optional(), after: step.optional() };
const value: z.ZodType<JsonValue> = z.json();

const edit = z.discriminatedUnion("op", [
  z.strictObject({ op: z.literal("add"), path, value, ...place }),
  z.strictObject({ op: z.literal("set"), path, value, ...place }),
  z.strictObject({ op: z.literal("remove"), path }),
]);

export const hashField = z
  .string()
  .regex(/^[0-9a-f]{64}$/i, "expected the SHA-256 of the file in hexadecimal");

/** Each reads the whole text: more at once are better a new text. */
const MOST_EDITS = 100;

export const editsList = z.array(edit).min(1).max(MOST_EDITS);
export const editsBody = jsonObject({ hash: hashField, edits: editsList });

const remark = z.object({
  severity: z.enum(["error", "warning"]),
  line: z.int().describe("From 1"),
  column: z.int().describe("From 1"),
  path: z.string(),
  message: z.string(),
});

export const checkAnswer = z.object({ remarks: z.array(remark) });
export const previewAnswer = z.object({
  before: z.string(),
  text: z.string(),
  hash: z.string(),
  remarks: z.array(remark),
});
export const hashAnswer = z.object({ hash: z.string() });
export const versionAnswer = z.object({ id: z.int(), text: z.string() });

export const fileAnswer = z
  .object({
    file: z.string(),
    text: z.string(),
    hash: z.string().describe("SHA-256 of the file; a change names it"),
    versions: z.array(
      z.object({ id: z.int(), size_bytes: z.int(), written_at: z.int().describe("Unix seconds") }),
    ),
    trial: z.object({ text: z.string(), seconds_left: z.int() }).nullable(),
  })
  .meta({ id: "ConfigFile" });
