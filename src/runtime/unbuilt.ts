import type { Config } from "#config/config.ts";

/** What the file asks for and this build does not do yet: one sentence a key. The rest of the file is in force. */
export function unbuilt({ ntp }: Config): readonly string[] {
  const asked: readonly (readonly [boolean, string, string])[] = [
    [ntp.enable, "ntp.enable", "the NTP client"],
  ];
  return asked
    .filter(([wanted]) => wanted)
    .map(([, key, what]) => `${key}: ${what} are not in this build yet; it is ignored`);
}
