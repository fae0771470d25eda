/** `npm run prove:edits -- FOLDER`: a thousand random edits of the profiles in a folder, each checked as the tests do. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readYaml } from "#config/yaml.ts";
import { checkedEdit, readPlain } from "../test/support/edit-check.ts";
import { randomFrom } from "../test/support/random.ts";
import { randomEdit } from "../test/support/varied-profiles.ts";

const EDITS = 1_000;
const MOST_BYTES = 64 * 1024; // the check compares line by line, which takes the square of their number

const [folder = "."] = process.argv.slice(2);
const files = globSync("**/*.{yaml,yml}", { cwd: folder }).sort();
const texts = files
  .map((file) => readFileSync(join(folder, file), "utf8"))
  .filter((text) => text.length < MOST_BYTES && isProfile(text));

/** The library that checks does not read every merge that the ecosystem writes. */
function isProfile(text: string): boolean {
  try {
    return (readYaml(text).root ?? {})["rules"] !== undefined && readPlain(text)["rules"] !== undefined;
  } catch {
    return false;
  }
}

if (texts.length === 0) throw new Error(`no profile in ${folder}`);
const pick = randomFrom(1);
let refused = 0;
for (let at = 0; at < EDITS; at++) {
  const which = at % texts.length;
  const text = texts[which] ?? "";
  const after = checkedEdit(text, randomEdit(readPlain(text), pick));
  if (after === null) refused++;
  texts[which] = after ?? text;
}
console.log(
  `${EDITS} edits of ${texts.length} profiles: ${EDITS - refused} done, ${refused} refused, none wrong`,
);
