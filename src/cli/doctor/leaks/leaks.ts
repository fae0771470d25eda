/**
 * The leak test: questions to servers as programs of this machine ask them, by sockets without a mark; and for each, whether
 * the running weir had it, what it did with it, and whom the server saw.
 */
import { randomBytes } from "node:crypto";
import { getServers } from "node:dns";
import type { Ip } from "#core/session.ts";
import { encodeQuestion } from "#dns/query.ts";
import type { Finding } from "#cli/doctor/finding.ts";
import { addressesIn, askByTcp, askByUdp, familyOfHost, type Bound, type Outcome } from "./ask.ts";
import { leakFinding, type Trial } from "./judge.ts";
import { ownAddresses } from "./own-lines.ts";
import { PROBE_LABEL, type RunningWeir } from "./running.ts";
import type { LeakServers } from "./servers.ts";
import { encodeBinding, mappedAddress } from "./stun.ts";

const TYPE_A = 1;

interface Target {
  readonly server: string;
  readonly host: string;
  readonly port: number;
  readonly family: 4 | 6;
}

interface Way extends Bound {
  /** Null: not bound. */
  readonly name: string | null;
}

/** `zone`: below which the DNS questions are. */
export async function leakFindings(
  servers: LeakServers,
  running: RunningWeir,
  zone: string,
): Promise<readonly Finding[]> {
  const own = ownAddresses();
  const hidden = new Set<Ip>([...own.map(({ ip }) => ip), ...servers.own]);
  const ways = (family: 4 | 6, withDevices: boolean): readonly Way[] => {
    const ours = own.filter((address) => address.family === family);
    const devices = withDevices ? [...new Set(ours.map(({ device }) => device))] : [];
    return [
      { name: null },
      ...ours.map(({ ip }) => ({ name: ip, address: ip })),
      ...devices.map((device) => ({ name: device, device })),
    ];
  };
  const trials: Promise<Trial>[] = [];
  for (const { host, port } of servers.stun)
    for (const target of await targetsOf(`${host}:${port}`, host, port, running))
      for (const way of ways(target.family, true)) trials.push(stunTrial(target, way, running));
  for (const url of servers.pages) {
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    for (const target of await targetsOf(url.origin, bare(url.hostname), port, running))
      for (const way of ways(target.family, false)) trials.push(pageTrial(target, url, way, running));
  }
  for (const server of new Set([...getServers(), ...servers.dns]))
    for (const network of ["udp", "tcp"] as const) trials.push(dnsTrial(server, network, zone, running));
  return (await Promise.all(trials)).map((trial) => leakFinding(trial, hidden));
}

const bare = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

/** One of each family that the server has. */
async function targetsOf(
  server: string,
  host: string,
  port: number,
  running: RunningWeir,
): Promise<readonly Target[]> {
  const family = familyOfHost(host);
  if (family !== null) return [{ server, host, port, family }];
  const found: Target[] = [];
  for (const each of [4, 6] as const) {
    const [address] = await running.addressesOf(host, each);
    if (address !== undefined) found.push({ server, host: address, port, family: each });
  }
  return found;
}

async function stunTrial(target: Target, way: Way, running: RunningWeir): Promise<Trial> {
  const request = encodeBinding();
  const outcome = await askByUdp(target, request, way, () => running.looked());
  const seen = outcome.answer === null ? null : mappedAddress(request, outcome.answer);
  return trialOf("stun", "udp", target, way, outcome, seen === null ? [] : [seen], running);
}

async function pageTrial(target: Target, url: URL, way: Way, running: RunningWeir): Promise<Trial> {
  const text = `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nUser-Agent: weir-doctor\r\nAccept: */*\r\n\r\n`;
  const tlsName = url.protocol === "https:" ? bare(url.hostname) : null;
  const asking = { ...way, tlsName, enough: isWholePage };
  const outcome = await askByTcp(target, Buffer.from(text), asking, () => running.looked());
  const page = outcome.answer?.toString("latin1") ?? "";
  return trialOf(
    "page",
    "tcp",
    target,
    way,
    outcome,
    addressesIn(page.slice(page.indexOf("\r\n\r\n"))),
    running,
  );
}

/** By its length; a page without one ends with the connection, or when no more comes. */
function isWholePage(got: Buffer): boolean {
  const text = got.toString("latin1");
  const head = text.indexOf("\r\n\r\n");
  const length = /^content-length: *(\d+)/im.exec(text.slice(0, Math.max(0, head)))?.[1];
  return head >= 0 && length !== undefined && got.length >= head + 4 + Number(length);
}

async function dnsTrial(
  server: string,
  network: "tcp" | "udp",
  zone: string,
  running: RunningWeir,
): Promise<Trial> {
  const { host, port } = splitServer(server);
  const name = `${PROBE_LABEL}${randomBytes(6).toString("hex")}.${zone}`.toLowerCase();
  const question = Buffer.from(encodeQuestion(name, TYPE_A));
  const target: Target = { server, host, port, family: host.includes(":") ? 6 : 4 };
  const way: Way = { name: null };
  const settled = (): Promise<void> => running.looked();
  const outcome =
    network === "udp"
      ? await askByUdp(target, question, way, settled)
      : await askByTcp(target, framed(question), { tlsName: null, enough: isWholeMessage }, settled);
  const trial = trialOf("dns", network, target, way, outcome, [], running);
  return { ...trial, askedWeir: running.wasAskedFor(name) };
}

/** RFC 1035 §4.2.2 */
function framed(message: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message]);
}

function isWholeMessage(got: Buffer): boolean {
  return got.length >= 2 && got.length >= 2 + got.readUInt16BE(0);
}

/** As the runtime writes the system's servers: an address, or one with a port. */
function splitServer(server: string): { readonly host: string; readonly port: number } {
  const [, six, four, port] = /^(?:\[(.+)\]|([\d.]+)):(\d+)$/.exec(server) ?? [];
  return { host: six ?? four ?? server, port: Number(port ?? 53) };
}

function trialOf(
  kind: Trial["kind"],
  network: Trial["network"],
  { server, family, port }: Target,
  { name }: Way,
  { refused, answer, sourcePort }: Outcome,
  shown: readonly Ip[],
  running: RunningWeir,
): Trial {
  const passage = sourcePort === 0 ? null : running.passageOf(network, sourcePort, port);
  const bound = name;
  return {
    kind,
    network,
    family,
    server,
    bound,
    refused,
    answered: answer !== null,
    shown,
    passage,
    askedWeir: false,
  };
}
