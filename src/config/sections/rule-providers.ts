/** `rule-providers`: remote, local or inline lists of conditions. */
import { block, choice, list, maybe, text } from "#core/fields.ts";
import { defaultPath, noItems, SOURCE, sourceOf } from "./proxy-providers.ts";

export const ruleProvider = block({
  ...SOURCE,
  behavior: choice(["domain", "ipcidr", "classical"]),
  format: choice(["yaml", "text", "mrs"]).default("yaml"),
  payload: list(text()).default([]),
  "path-in-bundle": maybe(text()),
}).transform((value, context) => {
  if (value.type === "inline" && value.payload.length === 0) context.issues.push(noItems(value));
  if (value.format === "mrs" && value.behavior === "classical")
    context.issues.push({
      code: "custom",
      path: ["format"],
      message: "mrs does not hold behavior classical; use yaml or text",
      input: value.format,
    });
  const source = sourceOf(value);
  return { ...value, ...source, path: source.path ?? defaultPath("rules", source.url) };
});
