import type { Config } from "#config/config.ts";

/** What the file asks for and this build does not do yet: one sentence a key. The rest of the file is in force. */
export function unbuilt({ ntp }: Config): readonly string[] {
  if (!ntp.enable || !ntp.writeToSystem) return [];
  return ["ntp.write-to-system: this build does not set the system's clock; it corrects its own time only"];
}
