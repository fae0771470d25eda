/** Network namespaces for tests that need root: made under names of their own, gone when the test ends. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { missing } from "./peer.ts";
import { until } from "./until.ts";

const exec = promisify(execFile);
const CONFIG_DIR = "/etc/netns";
let made = 0; // names differ within the process, too

/**
 * The reason why a test that needs namespaces and these programs is skipped; false: it runs. With REQUIRE_NETNS=1, set
 * wherever root is expected, a reason is an error.
 */
export function skipNetns(what: string, ...programs: readonly string[]): string | false {
  const reason = obstacle(programs);
  if (reason === null) return false;
  const text = `SKIP netns ${what}: ${reason}`;
  if (process.env["REQUIRE_NETNS"] === "1") throw new Error(`${text}, but REQUIRE_NETNS=1`);
  return text;
}

function obstacle(programs: readonly string[]): string | null {
  if (process.platform !== "linux") return "needs Linux";
  if (process.getuid?.() !== 0) return "needs root";
  const absent = missing("ip", ...programs);
  if (absent !== false) return absent.replace(/^SKIP /, "");
  const probe = `weir-probe-${process.pid}`;
  const added = spawnSync("ip", ["netns", "add", probe]);
  spawnSync("ip", ["netns", "del", probe]);
  return added.status === 0 ? null : "this machine does not let root make namespaces";
}

export interface Netns extends AsyncDisposable {
  readonly name: string;
  /** What to put before a command. */
  readonly prefix: readonly string[];
  /** Runs a command inside and answers with what it printed; throws where it fails. */
  run(...command: readonly string[]): Promise<string>;
  /** Runs `ip` inside, one call a line. */
  ip(...lines: readonly string[]): Promise<void>;
  /** Loads an nftables script inside. */
  nft(script: string): Promise<void>;
  /** Starts a program inside, which is ended by its id with the namespace. */
  start(...command: readonly string[]): void;
}

/** With `lo` up. `resolvConf` is what programs inside find under /etc/resolv.conf. */
export async function openNetns(label: string, resolvConf = ""): Promise<Netns> {
  const name = `weir-${label}-${process.pid}-${++made}`;
  const prefix = ["ip", "netns", "exec", name];
  const programs = new Set<() => Promise<void>>();
  const configDir = join(CONFIG_DIR, name);
  mkdirSync(configDir, { recursive: true });
  writeFileSync(join(configDir, "resolv.conf"), resolvConf);
  const close = async () => {
    await Promise.all([...programs].map((stop) => stop()));
    spawnSync("ip", ["netns", "del", name]);
    rmSync(configDir, { recursive: true, force: true });
  };
  const run = async (...command: readonly string[]) => {
    const [program, ...args] = [...prefix, ...command];
    return (await exec(program as string, args)).stdout;
  };
  const ip = async (...lines: readonly string[]) => {
    for (const line of lines) await run("ip", ...line.split(" "));
  };
  const nft = async (script: string) => {
    const [program, ...args] = [...prefix, "nft", "-f", "-"];
    const loading = exec(program as string, args);
    loading.child.stdin?.end(script);
    await loading;
  };
  const start = (...command: readonly string[]) => {
    const [program, ...args] = [...prefix, ...command];
    // `ip netns exec` becomes the program, so its id is the program's.
    const child = spawn(program as string, args, { stdio: "ignore" });
    const ended = once(child, "exit");
    programs.add(async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await ended;
    });
  };
  try {
    await exec("ip", ["netns", "add", name]);
    await ip("link set lo up");
  } catch (error) {
    await close();
    throw error;
  }
  return { name, prefix, run, ip, nft, start, [Symbol.asyncDispose]: close };
}

export interface LinkEnd {
  readonly netns: Netns;
  /** Inside its namespace. */
  readonly device: string;
  /** With prefix lengths. */
  readonly addresses: readonly string[];
}

/** A cable between two namespaces, up, with addresses that can be used at once. It ends with either namespace. */
export async function link(a: LinkEnd, b: LinkEnd): Promise<void> {
  const near = `link add ${a.device} netns ${a.netns.name}`;
  await exec("ip", `${near} type veth peer name ${b.device} netns ${b.netns.name}`.split(" "));
  for (const { netns, device, addresses } of [a, b]) {
    for (const address of addresses)
      await netns.ip(`address add ${address} dev ${device}${address.includes(":") ? " nodad" : ""}`);
    await netns.ip(`link set ${device} up`);
  }
  for (const end of [a, b]) await untilCarried(end);
}

/** The kernel tells of a carrier up to a second late, and until then IPv6 has no neighbours there. */
async function untilCarried({ netns, device }: LinkEnd): Promise<void> {
  const shown = () => netns.run("ip", "link", "show", device);
  await until(`carrier of ${device}`, async () => (await shown()).includes(" state UP "));
}

const SEEN = `
table inet seen {
  set four { type ipv4_addr . inet_proto . inet_service; flags dynamic; size 4096; }
  set six { type ipv6_addr . inet_proto . inet_service; flags dynamic; size 4096; }
  chain out {
    type filter hook output priority -300;
    oifname "lo" accept
    meta nfproto ipv4 meta l4proto { tcp, udp } update @four { ip daddr . meta l4proto . th dport }
    meta nfproto ipv6 meta l4proto { tcp, udp } update @six { ip6 daddr . meta l4proto . th dport }
  }
}
`;

export interface Departures {
  /** `udp 192.0.2.1 53`, each once, sorted: every destination that a packet left the namespace for. */
  list(): Promise<readonly string[]>;
  forget(): Promise<void>;
}

/** From now on nothing leaves the namespace unseen. */
export async function watchDepartures(netns: Netns): Promise<Departures> {
  await netns.nft(SEEN);
  const listSet = async (set: string): Promise<readonly string[]> => {
    const { nftables } = JSON.parse(await netns.run("nft", "-j", "list", "set", "inet", "seen", set)) as {
      nftables: { set?: { elem?: { concat: [string, string, number] }[] } }[];
    };
    return nftables.flatMap(({ set: found }) =>
      (found?.elem ?? []).map(({ concat: [address, protocol, port] }) => `${protocol} ${address} ${port}`),
    );
  };
  return {
    list: async () =>
      [...(await listSet("four")), ...(await listSet("six"))].toSorted((x, y) => x.localeCompare(y)),
    forget: () => netns.nft("flush set inet seen four\nflush set inet seen six\n"),
  };
}
