/** A program that does what a start does with a restore that waits: HOME. */
import { SILENT } from "#core/log.ts";
import { restoreAtStart } from "#cli/staged-restore.ts";

const outcome = await restoreAtStart(process.argv[2] ?? "", SILENT);
process.stdout.write(`${outcome?.kind ?? "none"}\n`);
