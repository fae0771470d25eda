/** The items of a rule list as text: one a line, or a YAML list below `payload`. */
import { ConfigError, messageOf } from "#core/errors.ts";
import { parseYamlDocument, YamlBoundError } from "#core/yaml-document.ts";
import { YAMLError } from "yaml";

/** `#` and `//` begin comments; blank lines count for nothing. */
export function textItems(text: string): string[] {
  return linesOf(text).filter((line) => line !== "" && !line.startsWith("#") && !line.startsWith("//"));
}

function linesOf(text: string): string[] {
  return text.split("\n").map((line) => line.trim());
}

/**
 * YAML that is more than a plain list goes to the general parser, which takes up to two seconds for a hostile mebibyte
 * and blocks the thread meanwhile: no more than this.
 */
const MOST_GENERAL_CHARACTERS = 512 * 1024;

/** Throws `ConfigError` where there is no list `payload` (or `rules`). */
export function yamlItems(text: string): string[] {
  const plain = plainItems(text);
  if (plain !== null) return plain;
  if (text.length > MOST_GENERAL_CHARACTERS)
    throw new ConfigError("this YAML is too large to be more than a plain list below payload:");
  const root = parseGeneral(text);
  const items = isMap(root) ? (root["payload"] ?? root["rules"]) : undefined;
  if (!Array.isArray(items)) throw new ConfigError("expected a list below the key payload");
  return items.map((item: unknown) => (typeof item === "string" ? item.trim() : shownItem(item)));
}

const MOST_SHOWN_CHARACTERS = 80;

/** A map or list among texts is none of any behaviour's entries: as JSON it is left out with the bad ones, and recognised. */
function shownItem(item: unknown): string {
  return JSON.stringify(item).slice(0, MOST_SHOWN_CHARACTERS);
}

function parseGeneral(text: string): unknown {
  try {
    // To find equal keys the library compares each with every other.
    const document = parseYamlDocument(text, { schema: "failsafe", uniqueKeys: false });
    const [fault] = document.errors;
    if (fault !== undefined) throw fault;
    return document.toJS({ maxAliasCount: 1000 });
  } catch (error) {
    throw new ConfigError(`not YAML: ${lineOf(error, text)}${messageOf(error)}`, { cause: error });
  }
}

/** `line 3: `, or nothing where it is not known. */
function lineOf(error: unknown, text: string): string {
  const offset =
    error instanceof YAMLError ? error.pos[0] : error instanceof YamlBoundError ? error.offset : null;
  return offset === null ? "" : `line ${text.slice(0, offset).split("\n").length}: `;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const HEAD = /^(?:payload|rules):\s*(?:#.*)?$/;
const ITEM = /^\s*-\s+(.*)$/;
/** In quotes with nothing escaped but a quote of its own kind; a comment may follow. */
const QUOTED = /^(?:'((?:[^']|'')*)'|"([^"\\]*)")(?:\s+#.*)?$/;
/** No alias, tag, map or list; nothing that a comment or a key could hide in. */
const PLAIN = /^[^\s'"[\]{}&*!|>%@`?:#,-][^#:]*$|^[A-Za-z0-9][^#]*$/;

/** The list that nearly every file is, read line by line; null where it is anything else. */
function plainItems(text: string): string[] | null {
  const items: string[] = [];
  let open = false;
  for (const line of text.split("\n")) {
    const body = line.trim();
    if (body === "" || body.startsWith("#")) continue;
    if (!open) {
      if (body === "---") continue;
      if (line !== line.trimStart() || !HEAD.test(body)) return null;
      open = true;
      continue;
    }
    const item = scalarOf(ITEM.exec(line)?.[1]?.trim() ?? "");
    if (item === null) return null;
    items.push(item);
  }
  return open ? items : null;
}

/** A `#` begins a comment behind a blank only. */
function withoutComment(text: string): string {
  for (let at = text.indexOf("#"); at > 0; at = text.indexOf("#", at + 1))
    if (/\s/.test(text.charAt(at - 1))) return text.slice(0, at).trimEnd();
  return text;
}

function scalarOf(text: string): string | null {
  const quoted = QUOTED.exec(text);
  if (quoted !== null) return (quoted[1]?.replaceAll("''", "'") ?? quoted[2] ?? "").trim();
  const bare = withoutComment(text);
  return PLAIN.test(bare) && !/:(\s|$)/.test(bare) ? bare : null;
}
