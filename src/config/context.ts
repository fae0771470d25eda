/** What every part of the parse works with. */
import { messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import { show } from "#core/fields.ts";
import type { GroupKind } from "#core/group.ts";
import type { Protocol } from "#core/protocol.ts";
import type { RuleType } from "#core/rule.ts";
import type { z } from "zod";
import type { Path, Report } from "./report.ts";
import { isMapValue, Shapes, type KeyMatch, type FileUse } from "./shape.ts";

/** What this build can do; the configuration is given it and never imports it. */
export interface Registries {
  readonly protocols: readonly Protocol[];
  readonly groupKinds: readonly GroupKind[];
  readonly ruleTypes: readonly RuleType[];
}

/** One thing that a schema had against a value; `path` is relative to the value. */
export interface Issue {
  readonly path: Path;
  readonly message: string;
  readonly missing: boolean;
  /** Right elsewhere, not done by this build: it costs the item, not the file. */
  readonly unsupported: boolean;
}

export interface ReadOptions {
  readonly match?: KeyMatch;
  /** As in `WalkOptions`. */
  readonly partial?: boolean;
  readonly prefix?: string;
  /** What is `Unsupported` is left out with a warning. */
  readonly tolerant?: boolean;
  /** Says the issues in the words of the section; without it each is reported at its own path. */
  readonly explain?: (issues: readonly Issue[]) => void;
}

export class Context {
  readonly report: Report;
  readonly registries: Registries;
  readonly files: Pick<SafeFiles, "resolve">;
  /** The keys without a value in the map at a path: to the reader they are not there. */
  readonly emptyKeys: (path: Path) => readonly string[];
  readonly #shapes: Shapes;

  constructor(
    report: Report,
    registries: Registries,
    files: Pick<SafeFiles, "resolve">,
    emptyKeys: (path: Path) => readonly string[] = () => [],
  ) {
    this.report = report;
    this.registries = registries;
    this.files = files;
    this.emptyKeys = emptyKeys;
    this.#shapes = new Shapes(report, files);
  }

  /** Every file that a value named so far. */
  get fileUses(): readonly FileUse[] {
    return this.#shapes.uses;
  }

  /** What the schema makes of the value, or null: then every fault is in the report. */
  read<S extends z.ZodType>(
    schema: S,
    value: unknown,
    path: Path,
    options: ReadOptions = {},
  ): z.output<S> | null {
    const { match = "exact", partial = false, prefix = "", tolerant = false } = options;
    const prepared = this.#shapes.prepare(schema, value, path, { match, partial, prefix });
    const usable = tolerant ? this.leaveOut(schema, prepared, path, prefix) : prepared;
    return this.readPrepared(schema, usable, path, options);
  }

  /** As `read`, for a value whose keys are in the schema's spelling already. */
  readPrepared<S extends z.ZodType>(
    schema: S,
    value: unknown,
    path: Path,
    { explain }: ReadOptions = {},
  ): z.output<S> | null {
    const result = parseSafely(schema, value);
    if (result.issues === null) return result.data as z.output<S>;
    if (explain !== undefined) explain(result.issues);
    else for (const issue of result.issues) this.report.error([...path, ...issue.path], issue.message);
    return null;
  }

  /**
   * As `read` for sections with fixed types, whose faults begin `yaml: line N:`. What is `Unsupported` is left out with a
   * warning.
   */
  readStrict<S extends z.ZodType>(
    schema: S,
    value: unknown,
    path: Path,
    partial = false,
  ): z.output<S> | null {
    const prepared = this.#shapes.prepare(schema, value, path, { match: "exact", partial, prefix: "" });
    const result = parseSafely(schema, this.leaveOut(schema, prepared, path));
    if (result.issues === null) return result.data as z.output<S>;
    for (const issue of result.issues) this.typeFault([...path, ...issue.path], issue.message);
    return null;
  }

  /** A prepared value without what is `Unsupported` in it, of which each is warned. */
  leaveOut(schema: z.ZodType, prepared: unknown, path: Path, prefix = ""): unknown {
    const unusable = parseSafely(schema, prepared).issues?.filter((issue) => issue.unsupported) ?? [];
    for (const { path: inner, message } of unusable) {
      const key = prefix === "" ? "" : `'${inner.join(".")}' `;
      this.report.warning([...path, ...inner], `${prefix}${key}${message}; it is left out`);
    }
    return without(
      prepared,
      unusable.map((issue) => issue.path),
    );
  }

  typeFault(path: Path, message: string): void {
    const { line } = this.report.positionOf(path);
    this.report.error(path, line === 0 ? message : `yaml: line ${line}: ${message}`); // 0: it came from no file
  }

  /** Brings the keys of one item into the spelling of the schema. */
  prepare(
    schema: z.ZodType,
    value: unknown,
    path: Path,
    match: KeyMatch,
    prefix: string,
    item: string | null = null,
  ): unknown {
    return this.#shapes.prepare(schema, value, path, { match, prefix: `${prefix}: `, item });
  }

  /** The items of a list section, or none; anything else than a list is an error. */
  list(value: unknown, path: Path): readonly unknown[] {
    if (value === undefined) return [];
    if (Array.isArray(value)) return value;
    this.typeFault(path, `expected a list, got ${show(value)}`);
    return [];
  }

  /** The entries of a map section, or none; anything else than a map is an error. */
  entries(value: unknown, path: Path): readonly (readonly [string, unknown])[] {
    if (value === undefined) return [];
    if (isMapValue(value)) return Object.entries(value);
    this.typeFault(path, `expected a map, got ${show(value)}`);
    return [];
  }
}

/** A copy of the value without what lies at these paths. */
export function without(value: unknown, paths: readonly Path[]): unknown {
  if (paths.length === 0) return value;
  const goes = (key: string | number) => paths.some((path) => path.length === 1 && path[0] === key);
  const inside = (key: string | number) =>
    paths.filter((path) => path.length > 1 && path[0] === key).map((path) => path.slice(1));
  if (Array.isArray(value)) return value.flatMap((item, at) => (goes(at) ? [] : [without(item, inside(at))]));
  if (!isMapValue(value)) return value;
  const entries = Object.entries(value).filter(([key]) => !goes(key));
  return Object.fromEntries(entries.map(([key, item]) => [key, without(item, inside(key))]));
}

type Outcome =
  | { readonly issues: null; readonly data: unknown }
  | { readonly issues: readonly Issue[]; readonly data: null };

/** Runs a schema; what its own code throws is an issue too, so that one odd value cannot end the whole parse. */
export function parseSafely(schema: z.ZodType, value: unknown): Outcome {
  try {
    const result = schema.safeParse(value, { reportInput: true });
    if (result.success) return { issues: null, data: result.data };
    return { issues: result.error.issues.map(toIssue), data: null };
  } catch (error) {
    return {
      issues: [{ path: [], message: messageOf(error), missing: false, unsupported: false }],
      data: null,
    };
  }
}

function toIssue(issue: z.core.$ZodIssue): Issue {
  const path = issue.path.map((part) => (typeof part === "number" ? part : String(part)));
  const missing = hasParam(issue, "missing") || (issue.input === undefined && issue.code === "invalid_type");
  const unsupported = hasParam(issue, "unsupported");
  return { path, missing, unsupported, message: missing ? "is required" : sentence(issue) };
}

function hasParam(issue: z.core.$ZodIssue, name: "missing" | "unsupported"): boolean {
  return issue.code === "custom" && issue.params?.[name] === true;
}

const KIND_NAMES: Readonly<Record<string, string>> = { object: "a map", record: "a map", array: "a list" };

function sentence(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_type" && issue.message.startsWith("Invalid input"))
    return `expected ${KIND_NAMES[issue.expected] ?? issue.expected}, got ${show(issue.input)}`;
  if (issue.code === "invalid_union") {
    const inner = issue.errors.flat()[0];
    if (inner !== undefined) return sentence({ ...inner, input: issue.input } as z.core.$ZodIssue);
  }
  return issue.message;
}
