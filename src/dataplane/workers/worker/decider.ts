/**
 * Decides on connections by the version of the tables that is in force, as the main thread would, or not at all. It never
 * decides by another version than the one that the main thread has announced, and gives up a decision whose version has
 * gone before the connection was made.
 */
import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import { ADDRESS_ORIGINS, type DialTemplate, type NodeTemplate } from "#core/dial-plan.ts";
import type { Facts } from "#core/rule.ts";
import { mayBeSniffed } from "#core/sniffer.ts";
import type { Destination, Endpoint, Ip } from "#core/session.ts";
import { beginWire } from "#protocols/begin-wire.ts";
import { ANY_V4, familyOf, isLoopback } from "#net/address/ip.ts";
import { KnownNames } from "#net/address/known-names.ts";
import { NamedAddresses } from "#net/address/named-addresses.ts";
import { ForeignAddresses } from "#net/address/own-address.ts";
import { THIS_MACHINE } from "#net/address/special-ranges.ts";
import { SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { decide, openTables, UNRULED, type RuleTables } from "#router/tables/decide.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import type { Dial } from "#dataplane/workers/shared/request-memory.ts";
import {
  CONNECTED,
  DIALLING,
  JOINED,
  NOT_DECIDED,
  REQUEST_TYPES,
  SERVED_ALONE,
  type DecisionData,
  type RequestType,
  type VersionWord,
} from "#dataplane/workers/shared/decision-data.ts";
import { FIRST_ACCEPTED_SLOT } from "#dataplane/workers/shared/relay-memory.ts";
import { SERVED } from "#dataplane/workers/shared/opcodes.ts";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";
import { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import { wholeSeconds } from "#dataplane/workers/shared/whole-seconds.ts";
import { choose, type Chosen, type FindRule } from "./chosen-way.ts";

/** What a client wants. */
export interface Wish {
  readonly type: RequestType;
  readonly destination: Destination;
  /** The answer of the handshake when it is connected. */
  readonly success: (local: Endpoint) => Uint8Array;
}

/** That, and who it is. */
export interface AskedConnection extends Wish {
  readonly slot: number;
  readonly listener: number;
  /** Socket address of the listening side; lent. */
  readonly local: Uint8Array;
}

interface DeciderHost {
  /** As `AcceptCalls` has it. */
  mayBeOwn(ip: Ip): boolean;
  /** An event that can wait until there is another one. */
  reportLazily(slot: number, kind: number): void;
  /** Of tests only. */
  readonly atSeam?: AtSeam | undefined;
}

interface Version {
  readonly data: DecisionData;
  readonly tables: RuleTables;
  readonly names: KnownNames | null;
  readonly named: NamedAddresses | null;
  /** How far the main thread's clock is ahead of the system's, in ms. */
  readonly clock: Float64Array;
}

/** Of one connection, while they are collected. */
type KnownFacts = { -readonly [Name in keyof Facts]: Facts[Name] };

/** What a handshake has answered to a client of this address. */
interface Answer extends Endpoint {
  readonly success: Wish["success"];
  readonly bytes: Uint8Array;
}

const NO_BYTES = new Uint8Array();
const unnamed = ({ ip, port }: Endpoint): Destination => ({ host: null, ip, port });
const saysNothing = (): Uint8Array => NO_BYTES;
/** What is not connected by then goes to the main thread, which dials anew with the whole timeout: no client waits for two. */
const SOON_MS = 1_000;

export class Decider {
  readonly #shared: AcceptMemory;
  readonly #host: DeciderHost;
  readonly #word: VersionWord;
  readonly #port: MessagePort | null;
  readonly #sockaddrs = new Sockaddrs();
  /** For a second address, while one is lent. */
  readonly #wanted = new Sockaddrs();
  readonly #foreign = new ForeignAddresses((ip) => this.#host.mayBeOwn(ip));
  #version: Version | null = null;
  #lastAnswer: Answer | null = null;
  /** By slot, from the first of the worker's own on: how its connection is dialled, if it was decided here. */
  readonly #ways: (DialTemplate | null)[] = [];

  /** `port` null: nothing is ever decided. */
  constructor(shared: AcceptMemory, host: DeciderHost, word: VersionWord, port: MessagePort | null) {
    this.#shared = shared;
    this.#host = host;
    this.#word = word;
    this.#port = port;
  }

  /** On the main thread's command, of which each goes with one message. */
  takeVersion(): void {
    const data: DecisionData | undefined =
      this.#port === null ? undefined : receiveMessageOnPort(this.#port)?.message;
    if (data === undefined) return;
    const tables = data.rules === null ? (this.#version?.tables ?? null) : openTables(data.rules);
    const names = data.names === null ? null : new KnownNames(data.names.known);
    const named = data.namedAddresses === null ? null : new NamedAddresses(data.namedAddresses);
    const clock = new Float64Array(data.clock);
    this.#version = tables === null ? null : { data, tables, names, named, clock };
  }

  /** What all clients of a listener want that are asked for nothing; null: the main thread knows. `decide` looks whether it still holds. */
  wishOf(listener: number): Wish | null {
    const to = this.#version?.data.listeners[listener]?.destination ?? null;
    return to === null ? null : { type: "Tunnel", destination: unnamed(to), success: saysNothing };
  }

  /** What a client wants that the kernel has brought here, on its way to this socket address. */
  captured(type: "Redir" | "TProxy", to: Uint8Array): Wish {
    return { type, destination: unnamed(this.#wanted.original(to)), success: saysNothing };
  }

  /** How to dial for a client; null: the main thread has to decide. */
  decide(asked: AskedConnection): Dial | null {
    const version = this.#version;
    if (version === null || version.data.version !== this.#word.present) return null;
    const { captures, sniffed, ownPorts } = version.data;
    const listener = version.data.listeners[asked.listener] ?? null;
    if (listener === null || ownPorts.has(asked.destination.port)) return null;
    const means = meantBy(asked.destination, version.named);
    if (sniffed !== null && mayBeSniffed(sniffed, means)) return null;
    const source = this.#sockaddrs.source(this.#shared.sources, asked.slot * SOCKADDR_BYTES);
    if (captures && !this.#foreign.has(source.ip)) return null; // it may be one of ours that has come back
    const find: FindRule = (ip, lookUp) => {
      const { fixed, root } = listener;
      if (fixed !== null) return { target: fixed, list: UNRULED, position: 0, end: 0 };
      const facts = this.#factsOf(asked, means, source, listener.name);
      if (ip !== null) facts.ip = ip;
      if (version.data.ignoresPrograms) facts.process = facts.uid = null;
      return decide(version.tables, root, facts, lookUp);
    };
    const chosen = choose(means, version, find);
    if (chosen === null || !isFree(source.ip, chosen.to.ip)) return null;
    const { way, to } = chosen;
    if (way.node !== undefined && ownPorts.has(to.port)) return null;
    const dial = this.#dialOf(asked, chosen);
    if (dial === null) return null;
    this.#note(asked, means, chosen, version.data.version, dial.address);
    this.#ways[asked.slot - FIRST_ACCEPTED_SLOT] = way;
    return dial;
  }

  /** What is known of every connection. Written out: a literal with others spread in costs a call into the runtime for each name. */
  #factsOf(
    { type, local }: AskedConnection,
    { host, port }: Destination,
    source: Endpoint,
    inboundName: string,
  ): KnownFacts {
    return {
      network: "tcp",
      host,
      port,
      sourceIp: source.ip,
      sourcePort: source.port,
      inboundName,
      inboundType: type,
      inboundPort: this.#sockaddrs.local(local).port,
      inboundUser: null,
      dscp: null,
    };
  }

  #dialOf(
    { local, success }: AskedConnection,
    { way, to: { ip, port, isOnly }, wants }: Chosen,
  ): Dial | null {
    if (!(familyOf(ip) === 4 ? way.v4 : way.v6) || (!way.loopback && isLoopback(ip))) return null;
    const { probes, interfaceName, names, node } = way;
    const timeoutMs = isOnly || names === null ? Math.min(way.timeoutMs, SOON_MS) : names.timeoutMs;
    const dial: Dial = {
      address: this.#sockaddrs.encode({ ip, port }),
      mark: way.routingMark,
      timeoutMs,
      idleSeconds: probes === null ? 0 : wholeSeconds(probes.idleMs),
      intervalSeconds: probes === null ? 0 : wholeSeconds(probes.intervalMs),
      device: interfaceName === "" ? NO_BYTES : Buffer.from(interfaceName),
      replyBytes: this.#answerOf(success, this.#sockaddrs.local(local)),
      isFirstOfMany: !isOnly,
    };
    return node === undefined ? dial : { ...dial, ...this.#overlay(node, wants) };
  }

  #overlay({ recipe }: NodeTemplate, wants: Destination): Pick<Dial, "under" | "wire"> {
    return { under: recipe.under, wire: () => beginWire(recipe, wants, this.nowMs) };
  }

  /** Nearly all clients ask in the same way and of the same address. */
  #answerOf(success: Wish["success"], { ip, port }: Endpoint): Uint8Array {
    const last = this.#lastAnswer;
    if (last?.success === success && last.ip === ip && last.port === port) return last.bytes;
    const bytes = success({ ip, port });
    this.#lastAnswer = { success, ip, port, bytes };
    return bytes;
  }

  #note(
    asked: AskedConnection,
    { host }: Destination,
    { found, way, seen, wants }: Chosen,
    version: number,
    to: Uint8Array,
  ): void {
    const { slot, type, local, destination } = asked;
    const { target, list, position, end } = found;
    const speaks = REQUEST_TYPES.indexOf(type);
    const origin = ADDRESS_ORIGINS.indexOf(seen.from);
    const { ip, port } = destination;
    const faked = host === destination.host ? null : ip;
    const row = [version, speaks, target, list, position, end, origin, faked === null ? 0 : 1] as const;
    const { decisions } = this.#shared;
    decisions.write(slot, row, to, local);
    if (way.node !== undefined) {
      decisions.setWanted(slot, this.#wanted.encode({ ip: seen.ip ?? ANY_V4, port: wants.port }));
    }
    if (host !== null) decisions.setName(slot, host);
    if (faked !== null) decisions.setFaked(slot, this.#wanted.encode({ ip: faked, port }));
    Atomics.store(decisions.decided, slot, DIALLING);
  }

  /** The time that protocols compare with their peers. */
  readonly nowMs = (): number => Date.now() + (this.#version?.clock[0] ?? 0);

  /** How a connection that was decided here is dialled; null: it was not, or has ended. */
  wayOf(slot: number): DialTemplate | null {
    return this.#ways[slot - FIRST_ACCEPTED_SLOT] ?? null;
  }

  /**
   * Its connection is made: from now on the main thread may find it. False: the version by which it was decided has gone
   * meanwhile, and it is to be given up. The store comes before the load, and the main thread takes the version away before
   * it looks for connections: so one of the two sees the other.
   */
  commit(slot: number): boolean {
    const { decisions } = this.#shared;
    const { decided, startedAtMs } = decisions;
    const version = decisions.versionOf(slot);
    startedAtMs[slot] = Date.now();
    Atomics.store(decided, slot, CONNECTED);
    this.#host.atSeam?.("committing");
    if (this.#word.present === version) return true;
    return Atomics.compareExchange(decided, slot, CONNECTED, NOT_DECIDED) === JOINED;
  }

  /** It could not be dialled, or was given up: the main thread has to decide. */
  giveUp(slot: number): void {
    this.#ways[slot - FIRST_ACCEPTED_SLOT] = null;
    Atomics.compareExchange(this.#shared.decisions.decided, slot, DIALLING, NOT_DECIDED);
  }

  /** Its connection is over. `served`: that is reported here; `joined`: it is the main thread's; `unknown`: it was never made. */
  end(slot: number): "served" | "joined" | "unknown" {
    const { decided } = this.#shared.decisions;
    this.giveUp(slot);
    const before = Atomics.compareExchange(decided, slot, CONNECTED, SERVED_ALONE);
    this.#host.atSeam?.("serving");
    if (before === CONNECTED) {
      this.#host.reportLazily(slot, SERVED);
      return "served";
    }
    decided[slot] = NOT_DECIDED;
    return before === JOINED ? "joined" : "unknown";
  }
}

/**
 * What leads from elsewhere to this machine has to be looked at by `ReachGuard`, as what leads to our own listeners. What
 * comes from this machine may do so for a client from elsewhere, by a connection of ours to a listener of ours: no version
 * is in force from before that is dialled until it has ended (`SelfDials.busy`), so that none of those is decided here, not
 * even by a listener that reads nothing of its clients.
 */
function isFree(source: Ip, to: Ip): boolean {
  return isLoopback(source) || !THIS_MACHINE.holds(to);
}

/** A fake address is what its name is. */
function meantBy(destination: Destination, named: NamedAddresses | null): Destination {
  const { host, ip } = destination;
  const name = host === null && ip !== null ? (named?.nameOf(ip) ?? null) : null;
  return name === null ? destination : { ...destination, host: name, ip: null };
}
