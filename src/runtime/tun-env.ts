/** What a TUN is given of the program around it: the routes, DNS and sockets of the runtime that is in force. */
import { openCapture, type Guard, type Ownership } from "#capture/index.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Metadata, Session } from "#core/session.ts";
import type { KernelDirect } from "#kernel-direct/kernel-direct.ts";
import { demandedOptions, type Egress } from "#net/dial/egress.ts";
import type { InheritedSockets } from "#net/listen/inherited-sockets.ts";
import { DEFAULT_KEEP_ALIVE } from "#net/dial/keep-alive.ts";
import type { Nftables } from "#platform/nftables.ts";
import type { SocketOptions } from "#platform/socket-maker.ts";
import type { EchoFate } from "#tun/echoes.ts";
import type { TunEnv } from "#tun/tun.ts";
import type { RuleData } from "./lists.ts";
import type { InForce } from "./in-force.ts";
import { openBypass } from "./open-bypass.ts";
import { dnsAnswers } from "./outbounds.ts";
import type { Runtime } from "./runtime.ts";
import type { TunEgress } from "./tun-egress.ts";

export interface TunsEnv {
  /** The one in force. */
  readonly runtime: () => Runtime | null;
  readonly inForce: InForce;
  readonly accept: (session: Session) => void;
  readonly egress: Egress;
  readonly learning: KernelDirect;
  readonly log: Log;
  /** Of another process of weir, where this one takes its place. */
  readonly inherited: InheritedSockets;
  /** What a flood of DNS questions took can be given back. */
  readonly onDnsSettled: () => void;
}

/** What all TUNs of the program share. */
export interface SharedByTuns {
  readonly nftables: Nftables;
  readonly guard: Guard;
  readonly ownership: Ownership;
  readonly egress: TunEgress;
  /** For a TUN whose device was deleted by another program: until it is disposed of, nothing passes by. */
  readonly hold: TunEnv["hold"];
  /** Of the configuration that the newest TUNs belong to. */
  readonly lists: () => RuleData | null;
}

/** For deciding about a ping. */
const DECISION_MS = 5_000;

export function tunEnv(
  env: TunsEnv,
  { nftables, guard, ownership, egress, hold, lists }: SharedByTuns,
): TunEnv {
  const { runtime, inForce, accept, learning, log, onDnsSettled, inherited } = env;
  const answers = dnsAnswers(inForce.handleDns, log);
  return {
    accept,
    log,
    dns: () => ((runtime()?.names.dns ?? null) === null ? null : answers),
    onDnsSettled,
    keepAlive: () => runtime()?.config.general.keepAlive ?? DEFAULT_KEEP_ALIVE,
    nowMs: () => performance.now(),
    decideEcho: (metadata) => decideEcho(env, metadata),
    socketOptions: () => socketOptions(env),
    openEgress: (settings, device) => egress.open(settings, device),
    openCapture: (plan) => openCapture(plan, { nftables, guard, ownership, log }),
    hold,
    inherited,
    openBypass: (settings, context) => openBypass(settings, context, { learning, log }),
    prefixesOf: (names) => names.flatMap((name) => lists()?.ruleProviders.all.get(name)?.networks ?? []),
  };
}

/** As sockets of DIRECT have them. */
function socketOptions({ runtime, egress }: TunsEnv): SocketOptions | null {
  const general = runtime()?.config.general;
  const demanded = demandedOptions(egress);
  if (general === undefined || (demanded === null && general.interfaceName === "")) return null;
  return {
    routingMark: demanded?.routingMark || general.routingMark,
    interfaceName: general.interfaceName || (demanded?.interfaceName ?? ""),
  };
}

async function decideEcho({ runtime: present, log }: TunsEnv, metadata: Metadata): Promise<EchoFate> {
  const runtime = present();
  if (runtime === null) return "drop";
  try {
    const { outbound, destination } = await runtime.router.route(metadata, AbortSignal.timeout(DECISION_MS));
    if (outbound.rejects === true) return outbound.type === "RejectDrop" ? "drop" : "refuse";
    const direct =
      (outbound.type === "Direct" || outbound.type === "Compatible") && outbound.inert === undefined;
    return direct && destination.ip === metadata.destination.ip ? "forward" : "answer";
  } catch (error) {
    log.debug(() => `[ICMP] ${metadata.source.ip}: ${messageOf(error)}`);
    return "answer";
  }
}
