import { render } from "preact";
import { AdminLink } from "./api/admin.ts";
import { Link } from "./api/link.ts";
import { App } from "./app.tsx";
import { Shared, type Environment } from "./state/context.ts";
import { Notices } from "./state/notices.ts";
import { ThemeChoice } from "./state/theme.ts";
import { TrafficWatch } from "./state/traffic.ts";

const link = new Link(location.href);
const environment: Environment = {
  link,
  admin: new AdminLink(link),
  notices: new Notices(),
  theme: new ThemeChoice(),
  watch: new TrafficWatch(link),
};
void link.probe();
render(
  <Shared.Provider value={environment}>
    <App />
  </Shared.Provider>,
  document.getElementById("app") as HTMLElement,
);
