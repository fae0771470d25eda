import { UsageError } from "./cli/flags.ts";
import { messageOf } from "#core/errors.ts";
import { runCommand } from "./cli/index.ts";

// The reader of a pipe (`weir schema | head`) may have closed it.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

/** Arguments in, exit code out; nothing else. */
async function main(): Promise<void> {
  try {
    process.exitCode = await runCommand(process.argv.slice(2), process.env);
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}

void main();
