/**
 * What a schema expects, walked beside a value before the schema reads it: brings keys into the schema's spelling,
 * warns of unknown ones with the nearest known name, and checks that named files lie in safe places.
 */
import { isPemText, type SafeFiles } from "#core/files.ts";
import { messageOf } from "#core/errors.ts";
import { Plain } from "#core/fields.ts";
import * as z from "zod";
import type { Path, Report } from "./report.ts";
import { isStrict } from "./strict.ts";
import { itemAt } from "#lib/at.ts";

/** A file that a key names. */
export interface FileUse {
  readonly path: Path;
  /** Absolute. */
  readonly file: string;
}

/** How keys are matched: as written, without regard to case, or also with `_` for `-`. */
export type KeyMatch = "exact" | "case" | "hyphen";

interface MapShape {
  readonly kind: "map";
  readonly keys: ReadonlyMap<string, Shape>;
  readonly names: ReadonlySet<string>;
  readonly folded: ReadonlyMap<string, string>;
  readonly open: boolean;
  /** An unknown key is an error. */
  readonly strict: boolean;
}

type Shape =
  | { readonly kind: "any" }
  | { readonly kind: "file" }
  | { readonly kind: "list"; readonly item: Shape }
  | { readonly kind: "record"; readonly item: Shape }
  | { readonly kind: "union"; readonly options: readonly Shape[] }
  | MapShape;

export interface WalkOptions {
  readonly match: KeyMatch;
  /** The schema reads only some keys of the outermost map; other schemas read the others. */
  readonly partial?: boolean;
  /** Precedes keys and files in messages. */
  readonly prefix: string;
  /** The item that the value is, where many items may have the same unknown key. */
  readonly item?: string | null;
}

const ANY: Shape = { kind: "any" };

/** Prepares values for schemas; lives as long as one parse. */
export class Shapes {
  readonly #shapes = new WeakMap<z.core.$ZodType, Shape>();
  readonly #report: Report;
  readonly #files: Pick<SafeFiles, "resolve">;
  /** Every file that a value named. */
  readonly uses: FileUse[] = [];

  constructor(report: Report, files: Pick<SafeFiles, "resolve">) {
    this.#report = report;
    this.#files = files;
  }

  /** The value with its keys in the schema's spelling. */
  prepare(schema: z.ZodType, value: unknown, path: Path, options: WalkOptions): unknown {
    return this.#walk(this.#shapeOf(schema), value, path, options);
  }

  #walk(shape: Shape, value: unknown, path: Path, options: WalkOptions): unknown {
    switch (shape.kind) {
      case "any":
        return value;
      case "file":
        this.#checkFile(value, path, options.prefix);
        return value;
      case "list":
        if (!Array.isArray(value)) return this.#walk(shape.item, value, path, options);
        if (shape.item.kind === "any") return value;
        return value.map((item, at) => this.#walk(shape.item, item, [...path, at], options));
      case "record":
        if (!isMapValue(value) || shape.item.kind === "any") return value;
        return mapValues(value, (item, key) => this.#walk(shape.item, item, [...path, key], options));
      case "union": {
        const fitting = shape.options.filter((option) => fits(option, value));
        return fitting.length === 1 ? this.#walk(itemAt(fitting, 0), value, path, options) : value;
      }
      case "map":
        if (isMapValue(value)) return this.#walkMap(shape, value, path, options);
        return value instanceof Plain ? value.source : value; // an object, but no map: the schema must not take it for one
    }
  }

  #walkMap(
    shape: MapShape,
    value: Readonly<Record<string, unknown>>,
    path: Path,
    options: WalkOptions,
  ): Record<string, unknown> {
    const prepared: Record<string, unknown> = Object.create(null);
    const inner = options.partial === true ? { ...options, partial: false } : options;
    for (const key in value) {
      let name = key;
      let known = shape.keys.get(key);
      if (known === undefined && options.match !== "exact") {
        name = shape.folded.get(fold(key, options.match)) ?? key;
        known = shape.keys.get(name);
      }
      if (known === undefined) {
        if (!shape.open && options.partial !== true) this.#unknownKey(shape, key, path, options);
        prepared[key] = value[key];
      } else if (name in prepared) {
        const message = `${options.prefix}${JSON.stringify(name)} is given twice, in two spellings`;
        this.#report.error([...path, key], message, "key");
      } else
        prepared[name] =
          known.kind === "any" ? value[key] : this.#walk(known, value[key], [...path, name], inner);
    }
    return prepared;
  }

  #unknownKey(shape: MapShape, key: string, path: Path, { prefix, item = null }: WalkOptions): void {
    const what = `unknown key ${JSON.stringify(key)}${this.#report.suggest(key, shape.names)}`;
    const about = item === null ? undefined : { name: item, what };
    if (shape.strict) this.#report.error([...path, key], prefix + what, "key");
    else this.#report.warning([...path, key], prefix + what, "key", about);
  }

  #checkFile(value: unknown, path: Path, prefix: string): void {
    const text = value instanceof Plain ? value.source : value;
    if (typeof text !== "string" || text === "" || isPemText(text)) return;
    try {
      this.uses.push({ path, file: this.#files.resolve(text) });
    } catch (error) {
      this.#report.error(path, prefix + messageOf(error));
    }
  }

  #shapeOf(schema: z.core.$ZodType): Shape {
    let shape = this.#shapes.get(schema);
    if (shape === undefined) {
      this.#shapes.set(schema, ANY); // a schema that contains itself ends here
      shape = this.#build(schema as z.core.$ZodTypes);
      this.#shapes.set(schema, shape);
    }
    return shape;
  }

  #build(schema: z.core.$ZodTypes): Shape {
    const { def } = schema._zod;
    switch (def.type) {
      case "object": {
        const entries = Object.entries(def.shape).map(([key, item]) => [key, this.#shapeOf(item)] as const);
        const folded = new Map(
          entries.flatMap(([key]) => [
            [fold(key, "case"), key] as const,
            [fold(key, "hyphen"), key] as const,
          ]),
        );
        return {
          kind: "map",
          keys: new Map(entries),
          names: new Set(Object.keys(def.shape)),
          folded,
          open: def.catchall !== undefined,
          strict: false,
        };
      }
      case "array":
        return { kind: "list", item: this.#shapeOf(def.element) };
      case "record":
        return { kind: "record", item: this.#shapeOf(def.valueType) };
      case "union":
        return { kind: "union", options: def.options.map((option) => this.#shapeOf(option)) };
      case "pipe": {
        const shape = this.#shapeOf(def.in._zod.def.type === "transform" ? def.out : def.in);
        return shape.kind === "map" && schema instanceof z.ZodType && isStrict(schema)
          ? { ...shape, strict: true }
          : shape;
      }
      case "transform":
        return schema instanceof z.ZodType && schema.meta()?.["x-weir-file"] === true
          ? { kind: "file" }
          : ANY;
      case "optional":
      case "nullable":
      case "default":
      case "prefault":
      case "readonly":
      case "catch":
      case "nonoptional":
        return this.#shapeOf(def.innerType);
      default:
        return ANY;
    }
  }
}

export function fold(key: string, match: KeyMatch): string {
  if (match === "exact") return key;
  const lower = key.toLowerCase();
  return match === "hyphen" ? lower.replaceAll("_", "-") : lower;
}

/** A map as files and JSON have it. */
export function isMapValue(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Plain);
}

function fits(shape: Shape, value: unknown): boolean {
  if (shape.kind === "map" || shape.kind === "record") return isMapValue(value);
  return shape.kind === "list" ? Array.isArray(value) : false;
}

function mapValues(
  value: Readonly<Record<string, unknown>>,
  change: (item: unknown, key: string) => unknown,
): object {
  const changed: Record<string, unknown> = Object.create(null);
  for (const key in value) changed[key] = change(value[key], key);
  return changed;
}
