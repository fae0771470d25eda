/**
 * A router in the middle of everything that may happen to its TUN, and a host behind it that counts what reaches it past the
 * proxy: nothing may, of either family, whatever is changed, read again, started again or killed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ORIGIN, ROUTER, talkTo, type Talk } from "../support/netns-row.ts";
import type { Since } from "../support/netns-steady-flows.ts";
import { startCore, type Core } from "../support/start-core.ts";
import { FAR, openTransit, type Transit } from "../support/transit.ts";
import { controller, patch } from "../support/tun-row.ts";
import { until } from "../support/until.ts";

export interface LeakCase {
  /** Redirected TCP and marks, or routes alone. */
  readonly by: "auto-redirect" | "auto-route";
  readonly onExit: "open" | "closed";
  /** How late datagrams are answered. */
  readonly lateMs: number;
  readonly masquerades: boolean;
}

/** How often what happens. */
export interface LeakCounts {
  readonly changes: number;
  readonly reloads: number;
  readonly restarts: number;
  /** Only where it is closed: there is nothing to be shown elsewhere. */
  readonly kills: number;
  /** How long it stays stopped after a kill. */
  readonly goneMs: number;
}

export interface LeakFindings {
  readonly case: LeakCase;
  readonly steps: readonly LeakStep[];
}

export interface LeakStep {
  readonly what: string;
  readonly times: number;
  /** Datagrams of the client and of the router's own programs. */
  readonly sent: number;
  /** Packets that arrived past the proxy. */
  readonly leaked: Readonly<Record<string, number>>;
  /** To the router itself, in one connection. */
  readonly rounds: number;
  readonly silenceMs: number;
}

const here = join(dirname(fileURLToPath(import.meta.url)), "..", "support");
const node = [process.execPath, "--disable-warning=ExperimentalWarning"];
const SSH_PORT = 2222;
const PROXY_PORT = 1080;
const FAKE = ["198.18.77.7", "fdfe:dcba:9877::77"] as const;

const LEAKS = `
table inet leaks {
  ${["tcp4", "udp4", "other4", "tcp6", "udp6", "other6", "fake"].map((name) => `counter ${name} { }`).join("\n  ")}
  chain arrives {
    type filter hook prerouting priority -300;
    iifname != "down0" accept
    ip daddr 198.18.0.0/15 counter name fake
    ip6 daddr fc00::/7 ip6 daddr != { fd00:2::/64, ${FAR[1]} } counter name fake
    ip daddr ${FAR[0]} meta l4proto tcp counter name tcp4
    ip daddr ${FAR[0]} meta l4proto udp counter name udp4
    ip daddr ${FAR[0]} meta l4proto != { tcp, udp } counter name other4
    ip6 daddr ${FAR[1]} meta l4proto tcp counter name tcp6
    ip6 daddr ${FAR[1]} meta l4proto udp counter name udp6
    ip6 daddr ${FAR[1]} meta l4proto != { tcp, udp } counter name other6
  }
}
`;

const MASQUERADE = `
table inet translation {
  chain leaves { type nat hook postrouting priority 100; oifname "up0" masquerade; }
}
`;

const configText = ({ by, onExit }: LeakCase, mtu: number): string => `
log-level: info
external-controller: 127.0.0.1:9090
secret: s3cret
tun:
  enable: true
  device: weir-tun0
  stack: system
  auto-route: true
  auto-redirect: ${by === "auto-redirect"}
  auto-detect-interface: ${by === "auto-route"}
  dns-hijack: ["any:53"]
  mtu: ${mtu}
  on-exit: ${onExit}
dns:
  enable: true
  ipv6: true
  enhanced-mode: fake-ip
  fake-ip-range: 198.18.0.1/16
  fake-ip-range6: fdfe:dcba:9877::/64
  nameserver: ["${ORIGIN[0]}"]
proxies: [{ name: far, type: socks5, server: ${ORIGIN[0]}, port: ${PROXY_PORT}, udp: true }]
rules: ["MATCH,far"]
`;

/** `said` is called at each step. */
export async function proveLeaks(
  of: LeakCase,
  counts: LeakCounts,
  said: (step: LeakStep) => void = () => {},
): Promise<LeakFindings> {
  await using undo = new AsyncDisposableStack();
  const row = undo.use(await openTransit("leaks"));
  const { client, router, origin } = row;
  await origin.nft(LEAKS);
  if (of.masquerades) await router.nft(MASQUERADE);
  const open = (netns: typeof client, script: string, ...args: readonly string[]): Talk =>
    talkTo(netns, [...node, join(here, script), ...args], undo);
  await open(origin, "netns-late-echo.ts", "4007", String(of.lateMs)).nextLine();
  await open(router, "netns-late-echo.ts", String(SSH_PORT), "0").nextLine();
  const listens = `listeners: [{ name: far, type: socks, listen: "${ORIGIN[0]}", port: ${PROXY_PORT}, udp: true }]\nrules: ["MATCH,DIRECT"]\n`;
  undo.use(await startCore(listens, { prefix: origin.prefix, timeoutMs: TIMEOUT_MS }));
  const proof = new Proof(row, of);
  undo.defer(() => proof.close());
  await proof.start();
  const flows = [...FAR, ...FAKE];
  proof.talks.push(
    open(client, "netns-steady-flows.ts", ...flows, `${ROUTER[0]}:${SSH_PORT}`),
    open(router, "netns-steady-flows.ts", ...flows),
  );
  await proof.recovers();
  const steps: LeakStep[] = [];
  for await (const step of proof.run(counts)) {
    steps.push(step);
    said(step);
  }
  return { case: of, steps };
}

/** Other rows run beside this one. */
const TIMEOUT_MS = 300_000;
const PATIENT = ["--max-time", `${TIMEOUT_MS / 1000}`] as const;
const KINDS = ["udp4", "udp6", "tcp4", "tcp6"] as const;

class Proof {
  readonly talks: Talk[] = [];
  readonly #row: Transit;
  readonly #case: LeakCase;
  #core: Core | null = null;
  #mtu = 1400;
  #sum = { sent: 0, rounds: 0, silenceMs: 0 };

  constructor(row: Transit, of: LeakCase) {
    this.#row = row;
    this.#case = of;
  }

  async start(): Promise<void> {
    const { prefix } = this.#row.router;
    this.#core = await startCore(configText(this.#case, this.#mtu), { prefix, timeoutMs: TIMEOUT_MS });
  }

  async close(): Promise<void> {
    await this.#core?.[Symbol.asyncDispose]();
  }

  async *run({ changes, reloads, restarts, kills, goneMs }: LeakCounts): AsyncGenerator<LeakStep> {
    const closed = this.#case.onExit === "closed";
    yield await this.#step("changes", changes, () => this.#change());
    yield await this.#step("reloads", reloads, (at) => this.#reload(at));
    yield await this.#step("restarts", restarts, () => this.#restart());
    if (closed) yield await this.#step("kills", kills, () => this.#kill(goneMs));
  }

  async #step(what: string, times: number, work: (at: number) => Promise<void>): Promise<LeakStep> {
    await this.#row.origin.run("nft", "reset", "counters", "table", "inet", "leaks");
    await this.#listen();
    this.#sum = { sent: 0, rounds: 0, silenceMs: 0 };
    for (let at = 0; at < times; at++) {
      await work(at);
      await this.recovers();
    }
    return { what, times, ...this.#sum, leaked: await this.#leaked() };
  }

  async #change(): Promise<void> {
    const status = await patch(this.#row, { tun: { mtu: this.#nextMtu() } }, ...PATIENT);
    if (!status.endsWith("204")) throw new Error(`PATCH /configs: ${status}`);
  }

  /** Every other one changes the TUN. */
  async #reload(at: number): Promise<void> {
    if (at % 2 === 0) this.#nextMtu();
    await this.#core?.reload(configText(this.#case, this.#mtu));
  }

  async #restart(): Promise<void> {
    const from = this.#core?.output().length ?? 0;
    await controller(this.#row, "/restart", "-X", "POST", ...PATIENT);
    await this.#core?.shows(/msg="weir .* is running/, from);
  }

  async #kill(goneMs: number): Promise<void> {
    await this.#core?.stop("SIGKILL");
    for (let leftMs = goneMs; leftMs > 0; leftMs -= 1_000) {
      await sleep(Math.min(leftMs, 1_000));
      await this.#listen();
    }
    await this.#core?.[Symbol.asyncDispose]();
    await this.start();
  }

  #nextMtu(): number {
    return (this.#mtu = this.#mtu === 1400 ? 1420 : 1400);
  }

  /** Everything that is captured is answered again; a check without which nothing would be shown. */
  async recovers(): Promise<void> {
    await this.#listen();
    const received = this.talks.map(() => ({ udp4: 0, udp6: 0, tcp4: 0, tcp6: 0 }));
    await until(
      () => `both are answered again, not ${JSON.stringify(received)}`,
      async () => {
        for (const [at, since] of (await this.#listen()).entries())
          for (const kind of KINDS) {
            const sum = received[at];
            if (sum !== undefined) sum[kind] += since[kind];
          }
        return received.every((each) => KINDS.every((kind) => each[kind] > 0));
      },
      { everyMs: 50, withinMs: TIMEOUT_MS },
    );
  }

  async #listen(): Promise<readonly Since[]> {
    const all: Since[] = [];
    for (const talk of this.talks) {
      talk.say("since");
      all.push(JSON.parse(await talk.nextLine()) as Since);
    }
    for (const { sent, rounds, silenceMs } of all) {
      this.#sum.sent += sent;
      this.#sum.rounds += rounds;
      this.#sum.silenceMs = Math.max(this.#sum.silenceMs, silenceMs);
    }
    return all;
  }

  async #leaked(): Promise<LeakStep["leaked"]> {
    const { nftables } = JSON.parse(
      await this.#row.origin.run("nft", "-j", "list", "counters", "table", "inet", "leaks"),
    ) as { nftables: readonly { counter?: { name: string; packets: number } }[] };
    return Object.fromEntries(
      nftables.flatMap(({ counter }) =>
        counter === undefined || counter.packets === 0 ? [] : [[counter.name, counter.packets]],
      ),
    );
  }
}

export function leakedIn({ leaked }: LeakStep): number {
  return Object.values(leaked).reduce((sum, packets) => sum + packets, 0);
}

export function shownCase({ by, onExit, lateMs, masquerades }: LeakCase): string {
  return `${by}, ${onExit}, ${lateMs} ms late${masquerades ? ", masquerading" : ""}`;
}

export function shownLeaks(of: LeakCase, step: LeakStep): string {
  const { what, times, sent, leaked, rounds, silenceMs } = step;
  const found = leakedIn(step) === 0 ? "0 packets outside" : `OUTSIDE: ${JSON.stringify(leaked)}`;
  return (
    `${shownCase(of)}: ${times} ${what}, ${sent} datagrams sent: ${found}; ` +
    `${rounds} answers of the router itself, ${silenceMs} ms between two at most`
  );
}
