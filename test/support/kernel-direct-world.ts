/** A client, a router that runs the core with kernel-direct, and what lies behind it; and how to see which way was taken. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import type { Talk } from "./netns-row.ts";
import { skipNetns, type Netns } from "./netns.ts";
import { startCore, type Core } from "./start-core.ts";
import { CLIENT, openTransit, ROUTER, UPLINK, type Transit } from "./transit.ts";

export const skip = skipNetns("kernel-direct", "nft", "curl", "dig", "ping", "tc");

export const node = [process.execPath, "--disable-warning=ExperimentalWarning"];
export const SEND_FRAMES = fileURLToPath(new URL("./send-frames.ts", import.meta.url));

/** Addresses of the origin outside every network of the hosts, by the last number. */
export const far = (last: number) => [`192.0.2.${last}`, `2001:db8:9::${last}`] as const;
export const NUMBERS = { direct: 10, proxied: 20, shared: 30, chosen: 40, process: 50, timed: 60 };
const HOSTS = Object.entries(NUMBERS).map(([name, last]) => `  ${name}.test: [${far(last).join(", ")}]`);

interface Wanted {
  /** More keys of `tun`. */
  readonly tun?: string;
  readonly rules?: readonly string[];
}

const RULES = [
  "DOMAIN,also.test,PX",
  "DOMAIN,proxied.test,PX",
  "DOMAIN,chosen.test,CHOICE",
  "DOMAIN-SUFFIX,test,DIRECT",
];

/** PX is as good as a proxy: it leaves by a device of its own, so nothing through it is provable. */
export const config = ({ tun = "", rules = RULES }: Wanted = {}) => `
log-level: info
external-controller: 0.0.0.0:9090
secret: s
ipv6: true
dns: { enable: true, ipv6: true, enhanced-mode: redir-host, nameserver: ["192.0.2.2"] }
hosts:
${HOSTS.join("\n")}
  also.test: [${far(NUMBERS.shared).join(", ")}]
tun: { enable: true, auto-route: true, auto-redirect: true, auto-detect-interface: false, kernel-direct: true, ${tun} }
proxies: [{ name: PX, type: direct, interface-name: up0 }]
proxy-groups: [{ name: CHOICE, type: select, proxies: [DIRECT, PX] }]
rules: [${[...rules, "MATCH,PX"].map((rule) => `"${rule}"`).join(", ")}]
`;

export async function openWorld(label: string): Promise<Transit> {
  const row = await openTransit(label);
  // Datagrams are answered from an address that the router does not know as a neighbour's.
  await row.origin.ip("route change 198.51.100.0/24 dev down0 scope link src 192.0.2.2");
  for (const last of Object.values(NUMBERS))
    await row.origin.ip(
      `address add ${far(last)[0]}/32 dev lo`,
      `address add ${far(last)[1]}/128 dev lo nodad`,
    );
  return row;
}

export const ask = async ({ client }: Transit, name: string, server: string = ROUTER[0]) => {
  const answers = await Promise.all(
    ["A", "AAAA"].map((type) =>
      client.run("dig", "+short", "+time=3", "+tries=1", `@${server}`, `${name}.test`, type),
    ),
  );
  return answers.join("").trim().split("\n");
};

export const url = (host: string) => `http://${host.includes(":") ? `[${host}]` : host}/`;

/** Which program relays the client's requests to both addresses. */
export async function ways(row: Transit, last: number): Promise<ReturnType<typeof sourcesOf>> {
  await row.arrivals.forget();
  await Promise.all(far(last).map((host) => row.client.run("curl", "-sS", "--max-time", "4", url(host))));
  return sourcesOf(await row.arrivals.list());
}

/** Connections that stay open, to both addresses. */
export const hold = (row: Transit, last: number): readonly Talk[] =>
  far(last).map((host) => row.talk("hold", host, 7));

export async function assertEchoes(held: readonly Talk[], word: string): Promise<void> {
  for (const each of held) each.say(word);
  const lines = await Promise.all(held.map((each) => each.nextLine()));
  assert.deepEqual(
    lines,
    held.map(() => `tcp ${word}`),
  );
}

/** "kernel": all from the client itself; "proxy": all from the router, which may prefer a family of its own. */
export function sourcesOf(arrivals: readonly string[]): "kernel" | "proxy" | readonly string[] {
  const from = (whose: readonly string[]) =>
    arrivals.every((line) => whose.includes(line.split(" ")[1] as string));
  if (arrivals.length === 0) return arrivals;
  return from(CLIENT) ? "kernel" : from(UPLINK) ? "proxy" : arrivals;
}

export async function api(router: Netns, method: string, path: string, body?: object): Promise<unknown> {
  const args = ["curl", "-sS", "--max-time", "5", "-X", method, "-H", "Authorization: Bearer s"];
  if (body !== undefined) args.push("-H", "Content-Type: application/json", "-d", JSON.stringify(body));
  const text = await router.run(...args, "-w", "\n%{http_code}", `http://127.0.0.1:9090${path}`);
  const lines = text.split("\n");
  const status = Number(lines.pop());
  return { status, body: lines.join("") === "" ? null : JSON.parse(lines.join("\n")) };
}

export async function learnt(router: Netns, family: 4 | 6 = 4): Promise<readonly string[]> {
  const text = await router.run("nft", "-j", "list", "set", "inet", "svc", `inet${family}_kernel_direct_set`);
  const { nftables } = JSON.parse(text) as { nftables: { set?: { elem?: string[] } }[] };
  return nftables.flatMap(({ set }) => set?.elem ?? []).sort();
}

export const start = (row: Transit, text: string): Promise<Core> =>
  startCore(text, { prefix: row.router.prefix });
