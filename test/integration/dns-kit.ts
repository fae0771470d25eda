/** What the DNS tests share: a scripted server, an engine with plain options, a listener, peers from the system. */
import { execFile, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { DnsOptions, NameserverOptions } from "#core/dns-options.ts";
import { Slices } from "#core/slices.ts";
import { SILENT } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { type Dns, openDns } from "#dns/dns.ts";
import type { DnsEnv } from "#dns/env.ts";
import { frameOf, FrameReader } from "#dns/frames.ts";
import { decodeMessage, encodeMessage, type Message, type ResourceRecord } from "#dns/message.ts";
import { dnsQuestions, openDnsServer } from "#dns/server.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { parseNameserver } from "#net/dial/nameserver.ts";
import { acceptedSocket } from "../support/accepted.ts";
import { listeningDatagrams } from "../support/listening-datagrams.ts";

export const HOST = "127.0.0.1" as Ip;

export const server = (text: string): NameserverOptions => parseNameserver(text, () => {});

export const OPTIONS: DnsOptions = {
  enable: true,
  listen: null,
  listenQuic: null,
  listenH3: null,
  listenRoutingMark: 0,
  ipv6: true,
  ipv6TimeoutMs: 100,
  useHosts: true,
  useSystemHosts: false,
  enhancedMode: "redir-host",
  fakeIpRange: { ip: "198.18.0.1" as Ip, bits: 16 },
  fakeIpRange6: null,
  fakeIpFilterMode: "blacklist",
  fakeIpFilter: [],
  fakeIpRules: [],
  fakeIpTtlSeconds: 1,
  nameserver: [],
  defaultNameserver: [server("127.0.0.1")],
  fallback: [],
  fallbackFilter: { geoip: true, geoipCode: "CN", ipcidr: [], domain: [], geosite: [] },
  fallbackLazyQuery: false,
  nameserverPolicy: [],
  proxyServerNameserver: [],
  proxyServerNameserverPolicy: [],
  directNameserver: [],
  directNameserverFollowPolicy: false,
  respectRules: false,
  preferH3: false,
  cacheAlgorithm: "lru",
  cacheMaxSize: 4096,
};

const dialer = openDirectDialer({
  resolver: { lookup: () => Promise.reject(new Error("only addresses here")) },
});

export const ENV: DnsEnv = {
  hosts: [],
  exitFor: () => ({ dialer, kind: "direct" }),
  ownAddresses: () => new Set(),
  ipv6: true,
  log: SILENT,
  nowMs: () => Date.now(),
  resolvConf: null,
  hostsFile: null,
  sets: {
    geosite: () => null,
    ruleSet: () => null,
    condition: () => ({ reads: ["host"], match: () => false }),
  },
  countryOf: null,
  slices: new Slices(),
  hasQuic: () => true,
  observer: () => null,
  persist: null,
};

/** `ipv6` in the options stands for the global key, which switches it off for look-ups of the core, too. */
export function openTestDns(options: Partial<DnsOptions>, env: Partial<DnsEnv> = {}): Promise<Dns> {
  const { ipv6 = OPTIONS.ipv6 } = options;
  return openDns({ ...OPTIONS, ...options }, { ...ENV, ipv6, ...env });
}

/** What a scripted server does with a query: answers, says nothing (null), or sends these very bytes. */
export type Script = (query: Message, network: "udp" | "tcp") => ScriptAnswer | Promise<ScriptAnswer>;
export type ScriptAnswer = Message | Uint8Array | null;

export interface ScriptedServer extends AsyncDisposable {
  readonly port: number;
  /** Of every question, in order. */
  readonly asked: Message[];
}

/** Answers over UDP and TCP on one port. */
export async function openScripted(script: Script): Promise<ScriptedServer> {
  const asked: Message[] = [];
  const answerTo = async (bytes: Uint8Array, network: "udp" | "tcp") => {
    const query = decodeMessage(bytes);
    asked.push(query);
    const answer = await script(query, network);
    if (answer === null || answer instanceof Uint8Array) return answer;
    return encodeMessage({ ...answer, id: query.id });
  };
  const serve = (socket: Socket) => {
    socket.on("error", () => {});
    const frames = new FrameReader((frame) => {
      void answerTo(frame, "tcp").then((answer) => answer === null || socket.write(frameOf(answer)));
    });
    socket.on("data", (chunk: Buffer) => frames.push(chunk));
  };
  const { port, tcp, udp } = await openPair(serve);
  let open = true;
  udp.socket.receive((bytes, from) => {
    void answerTo(Buffer.from(bytes), "udp").then((answer) => {
      if (open && answer !== null) udp.socket.send(answer, from);
    });
  });
  const close = async () => {
    open = false;
    udp.close();
    tcp.close();
  };
  return { port, asked, [Symbol.asyncDispose]: close };
}

/** UDP and TCP on one free port: of two families of ports the kernel picks one, and the other may be taken. */
async function openPair(serve: (socket: Socket) => void) {
  for (;;) {
    const tcp = createServer({ allowHalfOpen: true, noDelay: true }, serve);
    tcp.listen(0, HOST);
    await once(tcp, "listening");
    const { port } = tcp.address() as { port: number };
    try {
      const udp = await listeningDatagrams({ ip: HOST, port });
      return { port, tcp, udp };
    } catch {
      tcp.close(); // another program has the UDP port: try another one
    }
  }
}

export function reply(query: Message, answers: readonly ResourceRecord[], rcode = 0): Message {
  const flags = 0x8180 | rcode;
  return { ...query, flags, questions: query.questions, answers, authorities: [], additionals: [] };
}

export function address(name: string, ip: string, ttl = 300): ResourceRecord {
  return { name, type: ip.includes(":") ? 28 : 1, class: 1, ttl, data: bytesOfIp(ip as Ip) };
}

/** Every A question gets this address; everything else an empty answer. */
export const always =
  (ip: string, ttl = 300): Script =>
  (query) =>
    reply(query, query.questions[0]?.type === 1 ? [address(query.questions[0].name, ip, ttl)] : []);

export interface Listener extends AsyncDisposable {
  readonly port: number;
}

/** The engine behind a UDP and a TCP socket on one free port. */
export async function listen(handle: Dns["handle"]): Promise<Listener> {
  const arrived = new EventEmitter();
  const { port, tcp, udp } = await openPair((socket) => arrived.emit("tcp", socket));
  const at = { ip: HOST as Ip, port };
  const endpoint = [at];
  await openDnsServer({
    log: SILENT,
    questions: dnsQuestions(),
    handle,
    listenUdp: async (on) => (on(udp.socket), endpoint),
    listenTcp: async ({ onAccepted }) => {
      arrived.on("tcp", (socket: Socket) => onAccepted(acceptedSocket(socket), at));
      return endpoint;
    },
  });
  const close = async () => {
    udp.close();
    tcp.close();
  };
  return { port, [Symbol.asyncDispose]: close };
}

const run = promisify(execFile);

/** `dig +short` and the like; the output's lines. */
export async function dig(port: number, ...words: string[]): Promise<string[]> {
  const base = ["@127.0.0.1", "-p", String(port), "+tries=1", "+time=5"];
  const { stdout } = await run("dig", [...base, ...words]);
  return stdout.split("\n").filter((line) => line !== "");
}

/** The reason to skip where a program is missing. */
export function missing(...programs: string[]): string | false {
  const folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  const absent = programs.filter((name) => !folders.some((folder) => existsSync(join(folder, name))));
  return absent.length === 0 ? false : `SKIP dns peers: ${absent.join(", ")} not installed`;
}

/** A port that is free for UDP and TCP now. */
export async function freePort(): Promise<number> {
  await using probe = await openScripted(() => null);
  return probe.port;
}

/** A program of the system with its own folder, ended by its pid. `configure` writes files and answers the arguments. */
export async function startPeer(
  program: string,
  configure: (folder: string) => Promise<readonly string[]>,
  isReady: () => Promise<boolean>,
): Promise<AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), "dns-peer-"));
  const child = spawn(program, await configure(folder), { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)));
  const ended = once(child, "exit");
  const close = async () => {
    child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true });
  };
  for (let tries = 0; tries < 100; tries++) {
    if (child.exitCode !== null) break;
    if (await isReady().catch(() => false)) return { [Symbol.asyncDispose]: close };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await close();
  throw new Error(`${program} did not start: ${output}`);
}

/** dnsmasq with the given lines as its whole configuration. */
export function startDnsmasq(port: number, lines: readonly string[]): Promise<AsyncDisposable> {
  const settings = [
    "no-daemon",
    "no-resolv",
    "no-hosts",
    `port=${port}`,
    `listen-address=${HOST}`,
    "bind-interfaces",
  ];
  return startPeer(
    "/usr/sbin/dnsmasq",
    async (folder) => {
      const file = join(folder, "dnsmasq.conf");
      await writeFile(file, [...settings, "user=root", `pid-file=${folder}/pid`, ...lines].join("\n"));
      return ["-C", file];
    },
    async () => (await dig(port, "+short", "version.bind", "chaos", "txt")).length > 0,
  );
}
