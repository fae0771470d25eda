/**
 * Against DNS rebinding: a page of evil.example whose name suddenly points at 127.0.0.1 sends `Host: evil.example`.
 * Where no secret protects the Controller, only names that cannot be rebound are served.
 */
import { isIP } from "node:net";

/** Is this a host that only programs on this machine can reach? Literal addresses and `localhost` only. */
export function isLoopbackHost(host: string): boolean {
  const bare = bareHost(host);
  if (isIP(bare) === 4) return bare.startsWith("127.");
  return bare === "::1" || bare === "localhost" || bare.startsWith("::ffff:127.");
}

const LOOPBACK_NAMES = new Set(["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"]);

/** `names`: further hosts that are ours (external-controller, exact allow-origins). */
export function hostAllowList(names: readonly string[]): (hostHeader: string) => boolean {
  const ours = new Set(names.map(bareHost));
  return (hostHeader) => {
    const host = bareHost(withoutPort(hostHeader));
    return isIP(host) !== 0 || LOOPBACK_NAMES.has(host) || host.endsWith(".localhost") || ours.has(host);
  };
}

/** The host of an exact origin (`https://panel.example:8443`); null with a wildcard or where it is no origin. */
export function hostOfOrigin(origin: string): string | null {
  return origin.includes("*") || !URL.canParse(origin) ? null : new URL(origin).hostname;
}

/** To compare `Host` with an origin: in lower case, an omitted port is the scheme's own. */
export function withPort(host: string, scheme: string): string {
  const lower = host.toLowerCase();
  return /:\d+$/.test(lower) ? lower : `${lower}:${scheme === "https" ? 443 : 80}`;
}

function bareHost(host: string): string {
  const lower = host.toLowerCase();
  if (lower.startsWith("[") && lower.endsWith("]")) return lower.slice(1, -1);
  return lower.endsWith(".") ? lower.slice(0, -1) : lower;
}

function withoutPort(host: string): string {
  return host.startsWith("[") ? host.replace(/\]:\d*$/, "]") : host.replace(/:\d*$/, "");
}
