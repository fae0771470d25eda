import type { UpkeepControl } from "#core/control.ts";

export function upkeepControl(
  restart: () => void,
  others: Omit<UpkeepControl, "prepareRestart">,
): UpkeepControl {
  return { prepareRestart: async () => restart, ...others };
}
