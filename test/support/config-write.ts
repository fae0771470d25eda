/** A process that replaces a configuration file when it is told to. */
import { writeSync } from "node:fs";
import { ConfigFile } from "#cli/config-file.ts";

const [path = "", text = ""] = process.argv.slice(2);
const file = new ConfigFile(path);
const { hash } = await file.read(); // all that is loaded late is loaded now
writeSync(1, "ready\n");
process.stdin.once("data", () => {
  void (async () => {
    {
      await using prepared = await file.prepare(Buffer.from(text), hash);
      await prepared.commit();
    }
    writeSync(1, "done\n");
    process.exit(0);
  })();
});
