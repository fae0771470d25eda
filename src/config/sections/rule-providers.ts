/** `rule-providers`: remote, local or inline lists of conditions. */
import { block, choice, list, maybe, text } from "#core/fields.ts";
import { defaultPath, SOURCE, sourceFault } from "./proxy-providers.ts";

export const ruleProvider = block({
  ...SOURCE,
  behavior: choice(["domain", "ipcidr", "classical"]),
  format: choice(["yaml", "text", "mrs"]).default("yaml"),
  payload: list(text()).default([]),
  "path-in-bundle": maybe(text()),
}).transform((value, context) => {
  const fault = sourceFault(value, value.payload.length);
  if (fault !== null) context.issues.push({ code: "custom", ...fault, input: value });
  if (value.format === "mrs" && value.behavior === "classical")
    context.issues.push({
      code: "custom",
      path: ["format"],
      message: "mrs does not hold behavior classical; use yaml or text",
      input: value.format,
    });
  return { ...value, path: value.path ?? defaultPath("rules", value.url) };
});
