/** Kernel, rights, limits, disk. */
import { closeSync, existsSync, openSync, readFileSync, statfsSync } from "node:fs";
import { arch, platform, release } from "node:os";
import { dirname } from "node:path";
import type { Config } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import { Nftables } from "#platform/nftables.ts";
import { mostOpenFiles } from "#platform/open-files.ts";
import { bad, fine, type Finding } from "./finding.ts";

export async function systemFindings(config: Config | null, home: string): Promise<readonly Finding[]> {
  return [kernel(), rights(config), limits(), ...tun(config), await nftables(), bpf(), disk(home)];
}

function kernel(): Finding {
  const found = `${platform()} ${release()} ${arch()}`;
  if (platform() === "linux") return fine("kernel", found);
  const advice = "run it on Linux where TUN, redirect, nftables or kernel-direct are wanted";
  return bad("warning", "kernel", found, ["only listeners and nodes work here", advice]);
}

/** capability(7) */
const NET_BIND_SERVICE = 10;
const NET_ADMIN = 12;
const SYS_ADMIN = 21;

function rights(config: Config | null): Finding {
  const status = textOf("/proc/self/status");
  const mask = /^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1];
  if (mask === undefined) return fine("rights", "this system does not say");
  const has = (bit: number): boolean => ((BigInt(`0x${mask}`) >> BigInt(bit)) & 1n) === 1n;
  const found = `user ${process.geteuid?.()}, CAP_NET_ADMIN ${has(NET_ADMIN) ? "yes" : "no"}, CAP_NET_BIND_SERVICE ${has(NET_BIND_SERVICE) ? "yes" : "no"}`;
  if (config !== null && wantsTun(config) && !has(NET_ADMIN))
    return bad("error", "rights", found, [
      "the TUN of the configuration cannot be opened without CAP_NET_ADMIN",
      "run it by a unit with AmbientCapabilities=CAP_NET_ADMIN, or as root",
    ]);
  const tunnel = config?.proxies.find(({ type, inert }) => type === "wireguard" && inert === null);
  if (tunnel !== undefined && !(has(SYS_ADMIN) && has(NET_ADMIN)))
    return bad("error", "rights", found, [
      `proxy ${tunnel.name} has a network of its own, which takes CAP_SYS_ADMIN and CAP_NET_ADMIN`,
      "AmbientCapabilities=CAP_SYS_ADMIN CAP_NET_ADMIN in its unit, without RestrictNamespaces (docs/protocols/wireguard.md)",
    ]);
  const first = Number(textOf("/proc/sys/net/ipv4/ip_unprivileged_port_start") || 1024);
  const low = config?.listeners.find(({ ports }) => ports.some((port) => port > 0 && port < first));
  if (low !== undefined && !has(NET_BIND_SERVICE))
    return bad("error", "rights", found, [
      `listener ${low.name} has a port below ${first}, which takes CAP_NET_BIND_SERVICE`,
      "AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit, or another port",
    ]);
  return fine("rights", found);
}

function wantsTun({ tun: { enable }, tunListeners }: Config): boolean {
  return enable || tunListeners.length > 0;
}

const FEW_FILES = 4096;

function limits(): Finding {
  const limit = mostOpenFiles();
  if (limit === null) return fine("limits", "this system does not say");
  const { soft, hard } = limit;
  const found = `${soft === Infinity ? "unlimited" : soft} open files (at most ${hard})`;
  if (soft >= FEW_FILES) return fine("limits", found);
  return bad("warning", "limits", found, [
    `two are needed a connection: about ${Math.floor(soft / 2)} connections at once`,
    "LimitNOFILE=1048576 in its unit, or ulimit -n",
  ]);
}

function tun(config: Config | null): readonly Finding[] {
  if (platform() !== "linux") return [];
  const level = config !== null && wantsTun(config) ? "error" : "warning";
  try {
    closeSync(openSync("/dev/net/tun", "r+"));
    return [fine("TUN", "/dev/net/tun can be opened")];
  } catch (error) {
    return [
      bad(level, "TUN", messageOf(error), [
        "no TUN device can be made",
        "modprobe tun; in a container pass /dev/net/tun in; as another user than root it must be allowed to open it",
      ]),
    ];
  }
}

/** Asks the kernel for its tables by the library that weir uses. */
async function nftables(): Promise<Finding> {
  try {
    await using session = await new Nftables().open("nftables");
    await session.run("list tables");
    return fine("nftables", "the library and the kernel answer");
  } catch (error) {
    return bad("warning", "nftables", messageOf(error), [
      "auto-redirect, strict capture and kernel-direct cannot be used",
      "run it with CAP_NET_ADMIN; install libnftables; a kernel with nf_tables",
    ]);
  }
}

function bpf(): Finding {
  if (existsSync("/proc/sys/kernel/unprivileged_bpf_disabled")) return fine("bpf", "the kernel has bpf(2)");
  return bad("warning", "bpf", "the kernel does not have bpf(2), or hides it", [
    "kernel-direct-ebpf cannot be used",
    "a kernel with CONFIG_BPF_SYSCALL, or kernel-direct without it",
  ]);
}

const FEW_BYTES = 100 * 1024 * 1024;

function disk(home: string): Finding {
  let folder = home;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  const { bavail, bsize, files, ffree } = statfsSync(folder);
  const found = `${Math.floor((bavail * bsize) / 1024 / 1024)} MiB free at ${folder}`;
  const isFull = bavail * bsize < FEW_BYTES;
  if (!isFull && (files === 0 || ffree > 100)) return fine("disk", found);
  return bad("error", "disk", isFull ? found : `${ffree} files can still be made at ${folder}`, [
    "users, tokens and counters cannot be written once it is full",
    "make room, or put the home directory elsewhere (-d)",
  ]);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return ""; // this system does not have it
  }
}
