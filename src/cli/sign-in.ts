/** What is shown at the start of the way into the dashboard. */
import { newSecret } from "#app/controller-slot.ts";
import type { App } from "#app/app.ts";
import type { Host } from "#host/host.ts";
import { endpointText, type Ip } from "#core/session.ts";
import { familyOf, LOOPBACK_V4 } from "#net/address/ip.ts";
import { ownAddresses } from "#net/address/own-address.ts";
import { NOT_GLOBAL, THIS_MACHINE } from "#net/address/special-ranges.ts";
import type { ParsedFlags } from "./flags.ts";
import type { Setup } from "./load.ts";

const EVERYWHERE = /^(?:0\.0\.0\.0|\[::\]):(\d+)$/;

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

/** Of a machine that listens everywhere: a server is looked at from elsewhere. */
function reachableAddress(): Ip {
  const all = ownAddresses().filter((ip) => !THIS_MACHINE.holds(ip) && !NOT_GLOBAL.holds(ip));
  return all.find((ip) => familyOf(ip) === 4) ?? all[0] ?? LOOPBACK_V4;
}

/** Where a secret is asked for: a link opens the dashboard without it. What is behind `#` is sent to no server. */
export function showSignInLink(flags: ParsedFlags, app: App, { journal, log }: Host): void {
  const isWanted = flags.on("sign-in-link");
  const endpoint = app.controllerEndpoints.find(({ kind }) => kind === "https" || kind === "http");
  if (endpoint === undefined || app.isOpen || (!isWanted && !process.stderr.isTTY)) return;
  const at = endpoint.text.replace(EVERYWHERE, (_, port: string) =>
    endpointText({ ip: reachableAddress(), port: Number(port) }),
  );
  const link = `${endpoint.kind}://${at}/ui/#sign-in=${journal.sessions.newCode()}`;
  if (isWanted) log.info(`sign in within ten minutes, once: ${link}`);
  else process.stderr.write(`Sign in within ten minutes, once: ${link}\n`);
}
