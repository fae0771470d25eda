/** A headless Chromium with a fresh profile that talks to this machine only, and notes what its pages complain about. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type BrowserContext, type Page } from "playwright-core";

const CHROMIUM = "/usr/bin/chromium";

/** The reason to skip, or false. */
export const noBrowser: string | false = existsSync(CHROMIUM)
  ? false
  : `SKIP dashboard: ${CHROMIUM} is not installed (Debian: apt-get install chromium)`;

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

export interface Browser extends AsyncDisposable {
  /** A page of its own, with storage of its own. */
  open(options?: PageOptions): Promise<WatchedPage>;
}

export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: "light" | "dark";
  /** What the browser is set to, as `fa-IR`. */
  readonly locale?: string;
  /** Sites are shown whatever their certificate is. */
  readonly anyCertificate?: boolean;
}

export interface WatchedPage extends AsyncDisposable {
  readonly page: Page;
  /** Errors and warnings on the console, uncaught errors, violations of the Content-Security-Policy. */
  readonly complaints: string[];
}

export async function openBrowser(): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), "weir-chromium-"));
  const first = await chromium.launchPersistentContext(profile, {
    executablePath: CHROMIUM,
    headless: true,
    args: ARGUMENTS,
  });
  const browser = first.browser();
  return {
    async open({
      width = 1180,
      height = 800,
      colorScheme = "light",
      locale = "en-US",
      anyCertificate = false,
    } = {}) {
      if (browser === null) throw new Error("the browser has gone");
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme,
        locale,
        ignoreHTTPSErrors: anyCertificate,
      });
      return watch(context, await context.newPage());
    },
    async [Symbol.asyncDispose]() {
      await first.close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function watch(context: BrowserContext, page: Page): Promise<WatchedPage> {
  const complaints: string[] = [];
  await page.exposeFunction("noteViolation", (text: string) => void complaints.push(`policy: ${text}`));
  await page.addInitScript(
    `addEventListener("securitypolicyviolation", (event) => noteViolation(event.violatedDirective + " " + event.blockedURI))`,
  );
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`uncaught: ${error.message}`));
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
}
