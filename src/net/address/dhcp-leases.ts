/**
 * Host names by hardware address, from what DHCP servers keep: the lease file of dnsmasq (also of OpenWrt), of ISC dhcpd, and
 * of systemd-networkd (JSON). What devices say of themselves: not to be trusted, and cut to what a host name is.
 */

/** Further ones are passed over. */
const MOST_NAMES = 65_536;
const MAC = /^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$/;
/** RFC 1123 §2.1, with the underscore that devices use; 63 characters a label, 253 in all. */
const HOST_NAME = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;

export type HostNames = ReadonlyMap<string, string>;

/** A text of none of these forms names no device. A later lease of the same device wins. */
export function parseLeases(text: string): HostNames {
  const names = new Map<string, string>();
  const put = (mac: string, name: string): void => {
    const key = mac.toLowerCase();
    if (!MAC.test(key) || name.length > 253 || !HOST_NAME.test(name)) return;
    if (names.size < MOST_NAMES || names.has(key)) names.set(key, name);
  };
  if (/^\s*\{/.test(text)) networkdLeases(text, put);
  else if (/^[ \t]*lease[ \t]+[\d.]+[ \t]*\{/m.test(text)) iscLeases(text, put);
  else dnsmasqLeases(text, put);
  return names;
}

type Put = (mac: string, name: string) => void;

// dnsmasq(8), dhcp-leasefile: EXPIRY MAC ADDRESS NAME CLIENT-ID; the name is * where there is none. The MAC of another type
// of hardware has its number in front of it.
function dnsmasqLeases(text: string, put: Put): void {
  for (const line of text.split("\n")) {
    const [expiry = "", mac = "", , name = ""] = line.trim().split(/\s+/);
    if (/^\d+$/.test(expiry)) put(mac, name);
  }
}

// dhcpd.leases(5): lease ADDRESS { hardware ethernet MAC; client-hostname "NAME"; … }
function iscLeases(text: string, put: Put): void {
  let mac = "";
  let name = "";
  for (const line of text.split("\n")) {
    const words = line.trim();
    if (words.startsWith("lease ")) mac = name = "";
    else if (words.startsWith("}")) put(mac, name);
    else {
      mac = /^hardware ethernet ([0-9a-f:]{17});/i.exec(words)?.[1] ?? mac;
      name = /^client-hostname "([^"\\]*)";/.exec(words)?.[1] ?? name;
    }
  }
}

/** systemd-networkd since 256, /var/lib/systemd/network/dhcp-server-lease/DEVICE. */
function networkdLeases(text: string, put: Put): void {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return; // cut, or of another program
  }
  for (const lease of listAt(read, "Leases")) {
    const bytes = listAt(lease, "HardwareAddress");
    const name = valueOf(lease, "Hostname");
    if (bytes.length !== 6 || typeof name !== "string") continue;
    put(bytes.map((byte) => Number(byte).toString(16).padStart(2, "0")).join(":"), name);
  }
}

function valueOf(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null
    ? Object.entries(value).find(([name]) => name === key)?.[1]
    : undefined;
}

function listAt(value: unknown, key: string): readonly unknown[] {
  const found = valueOf(value, key);
  return Array.isArray(found) ? found : [];
}
