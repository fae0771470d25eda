/** Routes through a device without a carrier (ip-sysctl, ignore_routes_with_linkdown). */
import { readFileSync, writeFileSync } from "node:fs";

const place = (family: string, of: string): string =>
  `/proc/sys/net/${family}/conf/${of}/ignore_routes_with_linkdown`;

/** Has routes through the device looked at, also without a carrier. False: the machine passes over those of all devices. */
export function usesDeadLink(device: string): boolean {
  return ["ipv4", "ipv6"].every((family) => {
    try {
      if (readFileSync(place(family, device), "utf8").trim() !== "0")
        writeFileSync(place(family, device), "0");
      return readFileSync(place(family, "all"), "utf8").trim() === "0"; // either of the two is enough to pass over them
    } catch {
      return true; // a kernel that does not have the setting, or not the family
    }
  });
}
