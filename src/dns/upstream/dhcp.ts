/**
 * The servers that DHCP gave an interface, read from what the system's own DHCP client left: a second client asking on
 * the same interface would need a raw socket and could disturb the lease.
 */
import { readdir, readFile } from "node:fs/promises";
import { DialError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import { openServerList, type ServerListEnv } from "./server-list.ts";
import { addressesIn, parseResolvConf } from "./system.ts";
import type { Upstream } from "./upstream.ts";

/** A lease is read again after this long. */
const REFRESH_MS = 20_000;

export interface DhcpEnv {
  /** Where files are looked for; "/" outside of tests. */
  readonly root: string;
  readonly openServer: ServerListEnv["openServer"];
  readonly nowMs: () => number;
}

export function openDhcpUpstream(name: string, env: DhcpEnv): Upstream {
  let known: readonly Ip[] = [];
  let readAtMs = Number.NEGATIVE_INFINITY;
  const current = async (): Promise<readonly Ip[]> => {
    if (known.length === 0 || Math.abs(env.nowMs() - readAtMs) >= REFRESH_MS) {
      readAtMs = env.nowMs();
      const read = await readLeases(name, env.root);
      if (read.length > 0) known = read;
    }
    if (known.length > 0) return known;
    throw new DialError(
      "resolve",
      `dhcp://${name}: no lease with DNS servers found; write an address, or system`,
    );
  };
  const forget = (): void => void (readAtMs = Number.NEGATIVE_INFINITY);
  return openServerList({ text: `dhcp://${name}`, current, forget, openServer: env.openServer, exit: name });
}

async function readLeases(name: string, root: string): Promise<readonly Ip[]> {
  const text = async (path: string) => readFile(`${root}${path}`, "utf8").catch(() => ""); // not this client
  const index = (await text(`sys/class/net/${name}/ifindex`)).trim();
  const networkd = index === "" ? [] : parseNetworkdLease(await text(`run/systemd/netif/leases/${index}`));
  if (networkd.length > 0) return networkd;
  const dhclient = parseDhclientLease(await text(`var/lib/dhcp/dhclient.${name}.leases`));
  if (dhclient.length > 0) return dhclient;
  const hooks = await readdir(`${root}run/dhcpcd/hook-state/resolv.conf`).catch(() => []);
  const hook = hooks.find((file) => file.startsWith(`${name}.dhcp`));
  return hook === undefined ? [] : parseResolvConf(await text(`run/dhcpcd/hook-state/resolv.conf/${hook}`));
}

/** `DNS=192.0.2.1 192.0.2.2` (systemd-networkd). */
export function parseNetworkdLease(text: string): readonly Ip[] {
  return addressesIn((/^DNS=(.*)$/m.exec(text)?.[1] ?? "").split(/\s+/));
}

/** `option domain-name-servers 192.0.2.1, 192.0.2.2;` in the last lease block (dhclient.leases(5)). */
export function parseDhclientLease(text: string): readonly Ip[] {
  const last = [...text.matchAll(/option domain-name-servers ([^;]+);/g)].at(-1)?.[1] ?? "";
  return addressesIn(last.split(/[\s,]+/));
}
