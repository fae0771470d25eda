import { lstatSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { replaceFile } from "#providers/replace-file.ts";
import { convertRuleSet } from "#providers/rule-set/convert.ts";
import { decodeMrs } from "#providers/rule-set/mrs.ts";
import type { Behavior, Format } from "#providers/rule-set/read.ts";
import { UsageError } from "./flags.ts";

const BEHAVIORS: readonly Behavior[] = ["domain", "ipcidr"];
const FORMATS: readonly Format[] = ["yaml", "text", "mrs"];

/** `convert-ruleset domain|ipcidr yaml|text|mrs SOURCE TARGET`: into mrs, and mrs into text. */
export async function convertRuleset(args: readonly string[]): Promise<number> {
  const [behaviorWord, formatWord, source, target, ...more] = args;
  const behavior = BEHAVIORS.find((word) => word === behaviorWord);
  const format = FORMATS.find((word) => word === formatWord);
  if (
    behavior === undefined ||
    format === undefined ||
    source === undefined ||
    target === undefined ||
    more.length > 0
  )
    throw new UsageError(
      `usage: weir convert-ruleset ${BEHAVIORS.join("|")} ${FORMATS.join("|")} SOURCE TARGET (format is that of SOURCE; mrs becomes text)`,
    );
  const { bytes, items, skipped } = await convertRuleSet(readFileSync(source), behavior, format);
  await refuseStrangeTarget(target, format);
  await replaceFile(resolve(target), bytes);
  const left = skipped === 0 ? "" : `; ${skipped} lines that are no ${behavior} item were left out`;
  process.stdout.write(`${target}: ${items} items, ${bytes.length} bytes${left}\n`);
  return 0;
}

/** An mrs file may be overwritten; a text file cannot be recognised as made by this command. Throws `UsageError`. */
async function refuseStrangeTarget(target: string, format: Format): Promise<void> {
  const stats = lstatSync(target, { throwIfNoEntry: false });
  if (stats === undefined) return;
  const isOurs = format !== "mrs" && stats.isFile() && (await isMrs(readFileSync(target)));
  if (!isOurs) throw new UsageError(`convert-ruleset: ${target} is there already, and is not overwritten`);
}

async function isMrs(bytes: Uint8Array): Promise<boolean> {
  try {
    await decodeMrs(bytes);
    return true;
  } catch {
    return false;
  }
}
