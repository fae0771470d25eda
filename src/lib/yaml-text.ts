import { stringify, type ToStringOptions } from "yaml";

/** Signs that YAML's readers refuse, or take for the end of a line, and its writer leaves as they are. */
// oxlint-disable-next-line no-control-regex
const UNWRITTEN = /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g;

/** A value as YAML that every reader takes, whatever its texts hold. */
export function yamlText(value: unknown, options: ToStringOptions = {}): string {
  const text = stringify(value, options);
  if (text.search(UNWRITTEN) === -1) return text;
  const quoted = stringify(value, {
    ...options,
    defaultKeyType: "QUOTE_DOUBLE",
    defaultStringType: "QUOTE_DOUBLE",
  });
  return quoted.replace(UNWRITTEN, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
