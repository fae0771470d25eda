/** Routes, IPv6, MTU, the system's DNS. */
import { getServers, Resolver } from "node:dns/promises";
import { readFileSync } from "node:fs";
import type { Config } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import { bad, fine, type Finding } from "./finding.ts";
import { serviceRecords } from "./service-records.ts";

export async function networkFindings(config: Config | null, name: string): Promise<readonly Finding[]> {
  const four = defaultDevice4();
  const six = defaultDevice6();
  const devices = [...new Set([four, six].filter((device) => device !== null))];
  return [routes(four, six), ipv6(config, six), ...devices.map(mtu), ...(await dns(name))];
}

function routes(four: string | null, six: string | null): Finding {
  const found = `IPv4 by ${four ?? "nothing"}, IPv6 by ${six ?? "nothing"}`;
  if (four !== null || six !== null) return fine("route", found);
  return bad("error", "route", found, [
    "there is no default route: nothing outside of the own networks can be reached",
    "ip route add default via GATEWAY, or see why DHCP has not set it",
  ]);
}

function ipv6(config: Config | null, six: string | null): Finding {
  const open = six === null ? undefined : tunsOf(config).find((tun) => leavesIpv6(tun, config));
  if (open !== undefined)
    return bad("error", "IPv6", `a default route by ${six}, and a TUN that takes no IPv6`, [
      "what has an IPv6 address is reached past weir, and sees the address of this line",
      "ipv6: true and tun.inet6-address so that the TUN takes IPv6, or tun.strict-route: true, which refuses it",
    ]);
  if (six !== null) return fine("IPv6", `a default route by ${six}`);
  if (config?.general.ipv6 !== true) return fine("IPv6", "no default route, and ipv6 is not true");
  return bad("warning", "IPv6", "no default route, while ipv6 is true", [
    "destinations that have IPv6 addresses only cannot be reached directly, and others are tried by IPv6 first",
    "ipv6: false where this machine has no IPv6",
  ]);
}

function tunsOf(config: Config | null): readonly Config["tun"][] {
  return config === null ? [] : [config.tun, ...config.tunListeners].filter(({ enable }) => enable);
}

function leavesIpv6({ autoRoute, strictRoute, inet6Address }: Config["tun"], config: Config | null): boolean {
  return autoRoute && !strictRoute && (config?.general.ipv6 !== true || inet6Address.length === 0);
}

/** RFC 8200 §5 */
const LEAST_MTU = 1280;

function mtu(device: string): Finding {
  const bytes = Number(linesOf(`/sys/class/net/${device}/mtu`)[0] ?? "0");
  const found = `${device} has ${bytes}`;
  if (bytes >= LEAST_MTU) return fine("MTU", found);
  return bad("error", "MTU", found, [
    `below ${LEAST_MTU} IPv6 and QUIC do not work, and large answers are lost`,
    `ip link set ${device} mtu 1500, or what the line allows`,
  ]);
}

const DNS_TIMEOUT_MS = 2_000;

async function dns(name: string): Promise<readonly Finding[]> {
  const servers = getServers();
  const asked = await Promise.all(
    servers.map(async (server) => [server, await faultOf(server, name)] as const),
  );
  const alive = asked.flatMap(([server, fault]) => (fault === null ? [server] : []));
  const records = await serviceRecords(alive, name);
  return [addresses(servers, asked), ...(records === null ? [] : [records])];
}

function addresses(
  servers: readonly string[],
  asked: readonly (readonly [server: string, fault: string | null])[],
): Finding {
  const dead = asked.filter(([, fault]) => fault !== null);
  const found =
    servers.length === 0
      ? "no nameserver in /etc/resolv.conf"
      : asked.map(([server, fault]) => `${server} ${fault ?? "answers"}`).join(", ");
  if (servers.length > 0 && dead.length === 0) return fine("DNS", found);
  const isDead = dead.length === servers.length;
  return bad(isDead ? "error" : "warning", "DNS", found, [
    isDead
      ? "no name can be resolved by the system's nameservers"
      : "names take longer while the dead one is asked",
    "correct /etc/resolv.conf; nameservers of dns.nameserver are asked by weir itself",
  ]);
}

/** Any answer shows that it lives, also that the name does not exist. */
async function faultOf(server: string, name: string): Promise<string | null> {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: 1 });
  try {
    resolver.setServers([server]);
    await resolver.resolve4(name);
    return null;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : messageOf(error);
    if (["ENOTFOUND", "ENODATA", "ESERVFAIL", "EREFUSED"].includes(code)) return null;
    return code === "ETIMEOUT" ? "does not answer" : `fails with ${code}`;
  }
}

const UP = 1;

/** route(8): columns device, destination, gateway, flags … mask in the eighth. */
function defaultDevice4(): string | null {
  for (const line of linesOf("/proc/net/route").slice(1)) {
    const [device = "", destination, , flags = "0", , , , mask] = line.split(/\s+/);
    if (destination === "00000000" && mask === "00000000" && (Number.parseInt(flags, 16) & UP) !== 0)
      return device;
  }
  return null;
}

const REJECT = 0x200;

function defaultDevice6(): string | null {
  for (const line of linesOf("/proc/net/ipv6_route")) {
    const [destination, length, , , , , , , flags = "0", device = "lo"] = line.trim().split(/\s+/);
    const isDefault = destination === "0".repeat(32) && length === "00" && device !== "lo";
    if (isDefault && (Number.parseInt(flags, 16) & REJECT) === 0) return device;
  }
  return null;
}

function linesOf(path: string): readonly string[] {
  try {
    return readFileSync(path, "latin1").trim().split("\n");
  } catch {
    return []; // this system does not have it
  }
}
