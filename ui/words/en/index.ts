/** THE texts of the dashboard. `test/words.test.ts` keeps the other languages together with them, and finds what no page uses. */
import { editor } from "./editor.ts";
import { first } from "./first.ts";
import { frame } from "./frame.ts";
import { live } from "./live.ts";
import { nodes } from "./nodes.ts";
import { restore } from "./restore.ts";
import { routing } from "./routing.ts";
import { settings } from "./settings.ts";
import { setup } from "./setup.ts";
import { tokens } from "./tokens.ts";
import { update } from "./update.ts";
import { usage } from "./usage.ts";
import { users } from "./users.ts";

export const en = {
  ...frame,
  ...first,
  ...live,
  ...routing,
  ...usage,
  ...users,
  ...nodes,
  ...settings,
  ...editor,
  ...tokens,
  ...setup,
  ...restore,
  ...update,
};
export type English = typeof en;
