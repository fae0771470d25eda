/** `rule-providers`: remote, local or inline lists of conditions. */
import { block, choice, list, maybe, text, unsetAs } from "#core/fields.ts";
import { defaultPath, SOURCE, sourceOf, type SourceKeys, type UsableSource } from "./proxy-providers.ts";

export const ruleProvider = block({
  ...SOURCE,
  behavior: choice(["domain", "ipcidr", "classical"]),
  format: unsetAs(choice(["yaml", "text", "mrs"]), "yaml").default("yaml"),
  payload: list(text()).default([]),
  "path-in-bundle": maybe(text()),
}).transform((value) => {
  const source = usableSource(value);
  return { ...value, ...source, path: source.path ?? defaultPath("rules", source.url) };
});

interface RuleSourceKeys extends SourceKeys {
  readonly behavior: string;
  readonly format: string;
  readonly payload: readonly string[];
}

/** Other programs start with a list that can hold nothing, too. */
function usableSource(keys: RuleSourceKeys): UsableSource {
  const { type, behavior, format, payload } = keys;
  if (type !== "inline" && format === "mrs" && behavior === "classical")
    return nothing("format", "mrs does not hold behavior classical; use yaml or text");
  if (type === "inline" && payload.length === 0)
    return nothing("payload", "needs at least one item for type inline");
  return sourceOf(keys);
}

const nothing = (key: "format" | "payload", why: string): UsableSource => ({
  type: "inline",
  url: null,
  path: null,
  lack: { key, why },
});
