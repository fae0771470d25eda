/** Holds answers to what the API's own document says of them. */
import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { ApiDocument, Operation } from "./api-document.ts";

export interface Got {
  readonly status: number;
  /** Media type without parameters; "" without one. */
  readonly type: string;
  /** Null for what is no text, or was not read. */
  readonly text: string | null;
}

const METHODS = new Set(["get", "head", "post", "put", "patch", "delete"]);

/** Knows every schema of one document. */
export class AnswerCheck {
  readonly #ajv = new Ajv2020({
    strict: true,
    strictRequired: false,
    allErrors: true,
    formats: { "date-time": (text: string) => !Number.isNaN(Date.parse(text)) },
  });
  readonly #compiled = new Map<object, ValidateFunction>();

  constructor({ components }: ApiDocument) {
    this.#ajv.addKeyword("components"); // where the references point
    this.#ajv.addSchema({ $id: "document:", components } as object);
  }

  /** Throws where an answer is not declared, has another media type, a body that should not be, or another shape. */
  check(operation: Operation, got: Got, asked: string): void {
    const { status, type, text } = got;
    const declared = operation.responses[status] ?? operation.responses[`${Math.trunc(status / 100)}XX`];
    assert.ok(declared !== undefined, `${asked}: ${status} is not declared: ${text}`);
    const { content = {} } = declared;
    const kind = content[type] ?? content["*/*"];
    if (kind === undefined) {
      assert.ok(text === "" || text === null, `${asked}: ${status} with ${type} is not declared: ${text}`);
      return;
    }
    if (text === null) return;
    if (type !== "application/json") return;
    const { schema } = kind;
    assert.ok(schema !== undefined, `${asked}: ${status} has no schema`);
    const isValid = this.#validator(schema);
    const value: unknown = JSON.parse(text);
    const faults = () => JSON.stringify(isValid.errors?.slice(0, 3));
    assert.ok(isValid(value), `${asked}: ${faults()} in ${text.slice(0, 500)}`);
    if (status < 400) return;
    const { message, error } = value as { message: string; error: string };
    assert.equal(error, message, asked);
  }

  #validator(schema: object): ValidateFunction {
    const known = this.#compiled.get(schema);
    if (known !== undefined) return known;
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"document:#/components/');
    const made = this.#ajv.compile(JSON.parse(text) as object);
    this.#compiled.set(schema, made);
    return made;
  }
}

/** Every operation with its path and method. */
export function* operationsOf({ paths }: ApiDocument): Generator<readonly [string, string, Operation]> {
  for (const [path, methods] of Object.entries(paths))
    for (const [method, operation] of Object.entries(methods)) {
      assert.ok(METHODS.has(method), method);
      yield [path, method.toUpperCase(), operation];
    }
}
