/** A row whose router runs weir with a TUN: its configurations, its Controller, and what it leaves in the kernel. */
import { skipNetns, type Netns } from "./netns.ts";
import { FAMILIES, type Row } from "./netns-row.ts";
import type { Core } from "./start-core.ts";
import { until } from "./until.ts";

export const skip = skipNetns("tun", "nft", "curl", "ping");

export const [v4] = FAMILIES;
export const DEVICE = "weir-tun0";
export const SECRET = "s3cret";

export const config = (tun: string, rules = '"MATCH,DIRECT"', more = "") => `
log-level: debug
external-controller: 127.0.0.1:9090
secret: ${SECRET}
tun: { enable: true, device: ${DEVICE}, ${tun} }
dns: { enable: true, ipv6: true, enhanced-mode: redir-host, nameserver: ["${v4.origin}"] }
rules: [${rules}]
${more}`;

/** Redirects and the rules of section 8 and 9; nothing but what is asked for is left direct. */
export const MARK_MODE = "stack: gvisor, auto-route: true, auto-redirect: true, auto-detect-interface: false";
/** Everything through the device, TCP by the stack's NAT. */
export const ROUTED = "stack: system, auto-route: true, auto-redirect: false, auto-detect-interface: true";

export const curl = (from: Netns, ...args: readonly string[]) =>
  from.run("curl", "-sS", "--max-time", "5", ...args);

export function controller({ router }: Row, path: string, ...args: readonly string[]): Promise<string> {
  const auth = ["-H", `Authorization: Bearer ${SECRET}`];
  return curl(router, ...auth, ...args, `http://127.0.0.1:9090${path}`);
}

export async function tunOf(row: Row): Promise<Record<string, unknown>> {
  return (JSON.parse(await controller(row, "/configs")) as { tun: Record<string, unknown> }).tun;
}

export const patch = (row: Row, body: object, ...args: readonly string[]) =>
  controller(row, "/configs", "-X", "PATCH", "-d", JSON.stringify(body), "-w", "%{http_code}", ...args);

/** What a capture leaves on a router: rules of its own, its table of nftables, its device. */
export async function traces({ router }: Row): Promise<readonly string[]> {
  const looks = ["ip rule", "ip -6 rule", "ip route show table 2022", "nft list tables", "ip -br link"];
  const shown = await Promise.all(looks.map((look) => router.run("sh", "-c", `${look} 2>/dev/null || true`)));
  return shown
    .flatMap((text) => text.split("\n"))
    .filter((line) => /2022|^90\d\d:|^32768:|table inet|^weir-tun0|198\.18\./.test(line));
}

export function sessions(core: Core, network: string): number {
  return core.output().match(new RegExp(`\\[${network}\\] .*-->`, "g"))?.length ?? 0;
}

/** Lines come a little later than what they tell of. */
export const logged = (core: Core, network: string, count: number): Promise<void> =>
  until(
    () => `${count} sessions by ${network}, not ${sessions(core, network)}`,
    () => sessions(core, network) === count,
  );
