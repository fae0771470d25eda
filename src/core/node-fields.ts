/** Fields of nodes and listeners that cost only their item where they cannot be used. */
import * as z from "zod";
import { parseInteger, scalar, show, sourceOf, Unsupported } from "./fields.ts";

/**
 * A key that would change how traffic is protected or shaped and that this build does not have: given, it makes the item
 * inert, so that nothing goes out in another form than the file asks for. Nothing and `false` ask for nothing.
 */
export const unsupported = (why: string) =>
  z
    .unknown()
    .superRefine((value, context) => {
      if (asksForNothing(value)) return;
      context.addIssue({ code: "custom", message: why, params: { unsupported: true } });
    })
    .transform((): undefined => undefined)
    .optional();

/**
 * What other programs wrap a node or a listener of some kind in; without it its traffic would show what it is. Under any
 * of these keys, on any kind, it makes the item inert.
 */
export const disguiseFields = {
  "shadow-tls": unsupported("shadow-tls is not in this build"),
  "shadow-tls-opts": unsupported("shadow-tls is not in this build"),
  restls: unsupported("restls is not in this build"),
  "restls-opts": unsupported("restls is not in this build"),
  "res-tls": unsupported("restls is not in this build"),
};

const OFF: ReadonlySet<string> = new Set(["", "0", "false", "no", "off", "none"]);

function asksForNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  if (sourceOf(value) !== null || typeof value !== "object")
    return OFF.has(String(sourceOf(value)).toLowerCase());
  const { enable, enabled = enable }: { readonly enable?: unknown; readonly enabled?: unknown } = value;
  return Object.keys(value).length === 0 || (enabled !== undefined && asksForNothing(enabled));
}

/** Subscriptions have entries without a server that carry a text for the user: such a node is inert. */
const server = () =>
  scalar({ type: "string", minLength: 1 }, (source) =>
    source.trim() === "" ? new Unsupported("is empty") : source,
  );

const serverPort = () =>
  scalar({ type: "integer", minimum: 1, maximum: 65535 }, (source, raw) => {
    if (source.trim() === "") return new Unsupported("is empty");
    const value = parseInteger(source);
    return value !== null && value >= 1 && value <= 65535
      ? value
      : new Unsupported(`expected an integer from 1 to 65535, got ${show(raw)}`);
  });

/** The fields that every node with a server has. */
export const serverFields = { server: server(), port: serverPort() };
