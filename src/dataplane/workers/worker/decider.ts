/**
 * Decides on connections by the version of the tables that is in force, as the main thread would, or not at all. It never
 * decides by another version than the one that the main thread has announced.
 */
import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { NodeTemplate } from "#core/dial-plan.ts";
import type { Facts } from "#core/rule.ts";
import { mayBeSniffed } from "#core/sniffer.ts";
import type { Destination, Endpoint, Ip } from "#core/session.ts";
import { beginWire, firstRequestsOf } from "#protocols/begin-wire.ts";
import type { FirstRequest, FirstRequests } from "#protocols/first-requests.ts";
import { familyOf, isLoopback } from "#net/address/ip.ts";
import { KnownNames } from "#net/address/known-names.ts";
import { NamedAddresses } from "#net/address/named-addresses.ts";
import { ForeignAddresses } from "#net/address/own-address.ts";
import { PRIVATE, THIS_MACHINE } from "#net/address/special-ranges.ts";
import { SOCKADDR_BYTES } from "#platform/linux/sockaddr.ts";
import { decide, openTables, UNRULED, type RuleTables } from "#router/tables/decide.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import type { Dial } from "#dataplane/workers/shared/request-memory.ts";
import type { DecidedListener, DecisionData, VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import { wholeSeconds } from "#dataplane/workers/shared/whole-seconds.ts";
import { choose, type Chosen, type FindRule } from "./chosen-way.ts";
import { DecidedSlots, type DecidedSlotsHost } from "./decided-slots.ts";
import type { AskedConnection, Wish } from "./wish.ts";

interface DeciderHost extends DecidedSlotsHost {
  /** As `AcceptCalls` has it. */
  mayBeOwn(ip: Ip): boolean;
}

interface Version {
  readonly data: DecisionData;
  readonly tables: RuleTables;
  readonly names: KnownNames | null;
  readonly named: NamedAddresses | null;
  /** Of listeners of users, by number. */
  readonly requests: readonly (FirstRequests | null)[];
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
  readonly slots: DecidedSlots;
  readonly #shared: AcceptMemory;
  readonly #host: DeciderHost;
  readonly #word: VersionWord;
  readonly #port: MessagePort | null;
  readonly #sockaddrs = new Sockaddrs();
  /** Of clients that the kernel has brought here. */
  readonly #captured = new Sockaddrs();
  readonly #foreign = new ForeignAddresses((ip) => this.#host.mayBeOwn(ip));
  #version: Version | null = null;
  #lastAnswer: Answer | null = null;

  /** `port` null: nothing is ever decided. */
  constructor(shared: AcceptMemory, host: DeciderHost, word: VersionWord, port: MessagePort | null) {
    this.#shared = shared;
    this.#host = host;
    this.#word = word;
    this.#port = port;
    this.slots = new DecidedSlots(shared.decisions, host, word);
  }

  /** On the main thread's command, of which each goes with one message. */
  takeVersion(): void {
    const data: DecisionData | undefined =
      this.#port === null ? undefined : receiveMessageOnPort(this.#port)?.message;
    if (data === undefined) return;
    const tables = data.rules === null ? (this.#version?.tables ?? null) : openTables(data.rules);
    const names = data.names === null ? null : new KnownNames(data.names.known);
    const named = data.namedAddresses === null ? null : new NamedAddresses(data.namedAddresses);
    const requests = data.listeners.map((one) => (one?.users ? firstRequestsOf(one.users) : null));
    const clock = new Float64Array(data.clock);
    this.#version = tables === null ? null : { data, tables, names, named, requests, clock };
  }

  /** What a user asks for who has said that first; null: the main thread has to look. `decide` looks whether it still holds. */
  requestOf(listener: number, said: Buffer): FirstRequest | null {
    return this.#version?.requests[listener]?.read(said) ?? null;
  }

  /** What all clients of a listener want that are asked for nothing; null: the main thread knows. `decide` looks whether it still holds. */
  wishOf(listener: number): Wish | null {
    const to = this.#version?.data.listeners[listener]?.destination ?? null;
    return to === null ? null : { type: "Tunnel", destination: unnamed(to), success: saysNothing };
  }

  /** What a client wants that the kernel has brought here, on its way to this socket address. */
  captured(type: "Redir" | "TProxy", to: Uint8Array): Wish {
    return { type, destination: unnamed(this.#captured.original(to)), success: saysNothing };
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
      const facts = this.#factsOf(asked, means, source, listener);
      if (ip !== null) facts.ip = ip;
      if (version.data.ignoresPrograms) facts.process = facts.uid = null;
      return decide(version.tables, root, facts, lookUp);
    };
    const chosen = choose(means, version, find);
    if (chosen === null || !isFree(source.ip, chosen.to.ip, listener.users !== null)) return null;
    const { way, to } = chosen;
    if (way.node !== undefined && ownPorts.has(to.port)) return null;
    const dial = this.#dialOf(asked, chosen);
    if (dial === null) return null;
    this.slots.note(asked, means, chosen, version.data.version, dial.address);
    return dial;
  }

  /** What is known of every connection. Written out: a literal with others spread in costs a call into the runtime for each name. */
  #factsOf(
    { type, user, local }: AskedConnection,
    { host, port }: Destination,
    source: Endpoint,
    { name, users }: DecidedListener,
  ): KnownFacts {
    return {
      network: "tcp",
      host,
      port,
      sourceIp: source.ip,
      sourcePort: source.port,
      inboundName: name,
      inboundType: type,
      inboundPort: this.#sockaddrs.local(local).port,
      inboundUser: users?.names[user] ?? null,
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

  /** The time that protocols compare with their peers. */
  readonly nowMs = (): number => Date.now() + (this.#version?.clock[0] ?? 0);
}

/**
 * What leads from elsewhere to this machine has to be looked at by `ReachGuard`, as what leads to our own listeners. What
 * comes from this machine may do so for a client from elsewhere, by a connection of ours to a listener of ours: no version
 * is in force from before that is dialled until it has ended (`SelfDials.busy`), so that none of those is decided here, not
 * even by a listener that reads nothing of its clients. Users from elsewhere reach private addresses only where a rule names
 * these.
 */
function isFree(source: Ip, to: Ip, isUser: boolean): boolean {
  return isLoopback(source) || !(THIS_MACHINE.holds(to) || (isUser && PRIVATE.holds(to)));
}

/** A fake address is what its name is. */
function meantBy(destination: Destination, named: NamedAddresses | null): Destination {
  const { host, ip } = destination;
  const name = host === null && ip !== null ? (named?.nameOf(ip) ?? null) : null;
  return name === null ? destination : { ...destination, host: name, ip: null };
}
