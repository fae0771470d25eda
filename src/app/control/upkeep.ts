import type { UpkeepControl } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";

/** What this build cannot do for itself answers with a sentence, not with silence. */
export function upkeepControl(
  restart: () => void,
  { updateGeo, upgradeUi }: Pick<UpkeepControl, "updateGeo" | "upgradeUi">,
): UpkeepControl {
  return {
    prepareRestart: async () => restart,
    async upgrade() {
      throw new ApiError(
        500,
        "update error: this build does not update itself; install the new one and restart",
      );
    },
    upgradeUi,
    updateGeo,
  };
}
