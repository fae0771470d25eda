/** The built-in dashboard of the program that has a little of everything, in a real browser. */
import type { Socket } from "node:net";
import { openBrowser, type Browser, type PageOptions, type WatchedPage } from "./browser.ts";
import { FULL_ADMIN_SECRET, FULL_SECRET, startFullCore, type FullCore } from "./full-core.ts";
import { openTcpOrigin, type Origin } from "./origin.ts";

export interface FullDashboard extends AsyncDisposable {
  readonly browser: Browser;
  readonly origin: Origin;
  readonly full: FullCore;
  /** A page with the Controller's secret given. */
  open(hash: string, options?: PageOptions): Promise<WatchedPage>;
  /** The page of managed users with both secrets given, and its list there. */
  openUsers(options?: PageOptions): Promise<WatchedPage>;
}

export async function openFullDashboard(onSocket: (socket: Socket) => void): Promise<FullDashboard> {
  await using opened = new AsyncDisposableStack();
  const origin = opened.use(await openTcpOrigin(onSocket));
  const full = opened.use(await startFullCore(origin.port));
  const browser = opened.use(await openBrowser());
  const open = async (hash: string, options?: PageOptions): Promise<WatchedPage> => {
    const watched = await browser.open(options);
    await watched.page.goto(`${full.base}/ui/#/${hash}`);
    await watched.page.getByLabel("Secret").fill(FULL_SECRET);
    await watched.page.keyboard.press("Enter");
    return watched;
  };
  const openUsers = async (options?: PageOptions): Promise<WatchedPage> => {
    const watched = await open("users", options);
    await watched.page.getByLabel("Admin secret").fill(FULL_ADMIN_SECRET);
    await watched.page.keyboard.press("Enter");
    await watched.page.getByRole("button", { name: "seeded" }).waitFor();
    return watched;
  };
  const all = opened.move();
  return { browser, origin, full, open, openUsers, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
