/** What is shown at the start of the way into the dashboard. */
import { newSecret } from "#app/controller-slot.ts";
import type { App } from "#app/app.ts";
import type { Host } from "#host/host.ts";
import type { ParsedFlags } from "./flags.ts";
import type { Setup } from "./load.ts";

/** The built-in configuration has no secret that a user could know, so each start makes one and shows it once. */
export function embeddedSecret(flags: ParsedFlags, { source }: Setup): string | null {
  return source.embedded === true && flags.text("secret") === null ? newSecret() : null;
}

/** That secret, where this start has made one. */
export function showSecret(app: App, secret: string | null): void {
  const [endpoint] = app.controllerEndpoints;
  if (secret !== null && endpoint?.kind === "http")
    process.stderr.write(`Controller: http://${endpoint.text}/ui/  secret: ${secret}\n`);
}

/** Where a secret is asked for: a link opens the dashboard without it. What is behind `#` is sent to no server. */
export function showSignInLink(flags: ParsedFlags, app: App, { journal, log }: Host): void {
  const isWanted = flags.on("sign-in-link");
  const endpoint = app.controllerEndpoints.find(({ kind }) => kind === "https" || kind === "http");
  if (endpoint === undefined || app.isOpen || (!isWanted && !process.stderr.isTTY)) return;
  const at = endpoint.text.replace(/^(?:0\.0\.0\.0|\[::\])/, "127.0.0.1");
  const link = `${endpoint.kind}://${at}/ui/#sign-in=${journal.sessions.newCode()}`;
  if (isWanted) log.info(`sign in within ten minutes, once: ${link}`);
  else process.stderr.write(`Sign in within ten minutes, once: ${link}\n`);
}
