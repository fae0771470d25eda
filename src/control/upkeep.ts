import type { UpkeepControl } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";

/** What this build cannot do for itself answers with a sentence, not with silence. */
export function upkeepControl(restart: () => void, updateGeo: () => Promise<void>): UpkeepControl {
  return {
    prepareRestart: async () => restart,
    async upgrade() {
      throw new ApiError(
        500,
        "update error: this build does not update itself; install the new one and restart",
      );
    },
    async upgradeUi() {
      throw new ApiError(
        500,
        "external-ui: downloading a dashboard is not in this build yet; unpack it there by hand",
      );
    },
    updateGeo,
  };
}
