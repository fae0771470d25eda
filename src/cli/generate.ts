import { randomUUID } from "node:crypto";
import type { KeyMaterial } from "#core/protocol.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { realityKeyMaterial } from "#transport/reality/generate.ts";
import { echKeyMaterial } from "#transport/tls13/ech/generate.ts";
import { UsageError } from "./flags.ts";

const UUID: KeyMaterial = { kind: "uuid", forms: [], make: () => `${randomUUID()}\n` };

const KINDS: readonly KeyMaterial[] = [
  UUID,
  ...realityKeyMaterial,
  echKeyMaterial,
  ...PROTOCOLS.flatMap(({ keyMaterial }) => keyMaterial ?? []),
];

const WORDS = KINDS.map(({ kind, forms, argument }) => {
  if (argument !== undefined) return `${kind} ${argument}`;
  return forms.length === 0 ? kind : `${kind} [${forms.join("|")}]`;
});

export const GENERATE_USAGE = `usage: weir generate ${WORDS.join(" | ")}\n`;

/** `weir generate KIND`: fresh key material on standard output. */
export function generate(args: readonly string[]): number {
  const [kind = "", form] = args;
  const material = KINDS.find((one) => one.kind === kind);
  if (material === undefined)
    throw new UsageError(
      `generate: expected ${KINDS.map((one) => one.kind).join(" or ")}, got ${kind || "nothing"}`,
    );
  process.stdout.write(material.make(formOf(material, form)));
  return 0;
}

function formOf({ kind, forms, argument }: KeyMaterial, form: string | undefined): string {
  if (argument !== undefined) {
    if (form !== undefined) return form;
    throw new UsageError(`generate ${kind}: expected ${kind} ${argument}`);
  }
  const [first = ""] = forms;
  if (forms.length === 0 || form === undefined) return first;
  if (forms.includes(form)) return form;
  const known = `${forms.slice(0, -1).join(", ")} or ${forms.at(-1)}`;
  throw new UsageError(`generate ${kind}: expected ${known}, got ${form}`);
}
