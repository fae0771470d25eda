import { render } from "preact";
import { AdminLink } from "./api/admin.ts";
import { Link } from "./api/link.ts";
import { App } from "./app.tsx";
import { Shared, type Environment } from "./state/context.ts";
import { LanguageChoice } from "./state/language.ts";
import { Speedometer } from "./state/live.ts";
import { Notices } from "./state/notices.ts";
import type { Unkept } from "./state/running-settings.ts";
import { Store } from "./state/store.ts";
import { ThemeChoice } from "./state/theme.ts";
import { TrafficWatch } from "./state/traffic.ts";

const link = new Link(location.href);
/** Of a link for signing in: it opens once, and has no place in the history. */
async function takeCode(): Promise<void> {
  const code = /^#sign-in=([\w-]+)$/.exec(location.hash)?.[1];
  if (code === undefined) return;
  history.replaceState(null, "", "#/overview");
  await link.unlockByCode(code);
  void link.probe();
}
await takeCode();
addEventListener("hashchange", () => void takeCode()); // the link was opened in a tab that shows the dashboard already
void link.probe();
const environment: Environment = {
  link,
  admin: new AdminLink(link),
  notices: new Notices(),
  theme: new ThemeChoice(),
  language: await LanguageChoice.open(),
  watch: new TrafficWatch(link),
  meter: new Speedometer(),
  draft: new Store<string | null>(null),
  unkept: new Store<Unkept>(new Map()),
  orders: new Map(),
};
render(
  <Shared.Provider value={environment}>
    <App />
  </Shared.Provider>,
  document.getElementById("app") as HTMLElement,
);
