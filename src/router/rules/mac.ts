/** Rules over the hardware address of a client in the networks around. */
import { ConfigError } from "#core/errors.ts";
import { show } from "#core/fields.ts";
import type { RuleType } from "#core/rule.ts";

const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/;

/** SRC-MAC,02:00:5e:00:53:01/02:00:5e:00:53:02 matches clients with one of these, by the kernel's neighbours. */
export const srcMac: RuleType = {
  type: "SRC-MAC",
  apiType: "SrcMAC",
  allowsOptions: false,
  parse(text) {
    const words = text.split("/").map((word) => word.trim().toLowerCase().replaceAll("-", ":"));
    const wrong = words.find((word) => !MAC.test(word));
    if (wrong !== undefined)
      throw new ConfigError(`SRC-MAC needs hardware addresses such as 02:00:5e:00:53:01, got ${show(wrong)}`);
    const wanted: ReadonlySet<string> = new Set(words);
    return {
      matcher: {
        reads: ["sourceMac"],
        match: ({ sourceMac }) => {
          if (sourceMac === undefined) return undefined;
          return sourceMac !== null && wanted.has(sourceMac);
        },
      },
      payload: words.join("/"),
    };
  },
};
