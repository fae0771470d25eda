/** The way of a client's question through the service (dns.md §3): hosts, fake-IP, mapping, AAAA gate, resolver. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp, familyOf } from "#net/address/ip.ts";
import { answerOf, bareAnswer, behindAlias, finishAnswer } from "./answer.ts";
import type { Aged } from "./cache.ts";
import type { CachingResolver } from "./caching-resolver.ts";
import type { FakeIp } from "./fake-ip.ts";
import { type Hosts, HOSTS_TTL_SECONDS } from "./hosts.ts";
import type { Mapping } from "./mapping.ts";
import { nameBytes } from "./name.ts";
import { type Observer, tryObservationOf } from "./observe.ts";
import type { Packet } from "./packet.ts";
import { encodeQuestion, type Query, QueryReader } from "./query.ts";
import { CLASS_IN, FLAG, HEADER_BYTES, MAX_MESSAGE_BYTES, OPCODE_MASK, RCODE, TYPE } from "./types.ts";

export interface ServiceEnv {
  /** Null: `use-hosts` is false. */
  readonly hosts: Hosts | null;
  /** Null outside of mode fake-ip. */
  readonly fakeIp: FakeIp | null;
  /** Null in mode normal. */
  readonly mapping: Mapping | null;
  readonly ipv6: boolean;
  readonly resolver: CachingResolver;
  /** Read for each answer; null: answers are not reported. */
  readonly observer: () => Observer | null;
  readonly log: Log;
}

export interface AskedBy {
  /** UDP answers are cut to what the asker can take, others never. */
  readonly network: "udp" | "tcp";
  /** A further bound for UDP answers; a hijacked packet's is 2048. */
  readonly maxBytes?: number;
}

/** Throws `ProtocolError` where the message is no query. */
export type HandleDns = (message: Uint8Array, by: AskedBy) => Promise<Uint8Array>;

const OBSERVER_MS = 200;
const MAX_UDP_PAYLOAD = 65_507;
const PLAIN_UDP_BYTES = 512;

interface Step extends Aged {
  /** Fake addresses are not reported to the observer. */
  readonly fake: boolean;
}

const fresh = (packet: Packet, fake = false): Step => ({ packet, takeSeconds: 0, fake });

export class DnsService {
  readonly #env: ServiceEnv;
  readonly #reader = new QueryReader();
  #running = 0;
  #onAnswered: (() => void) | null = null;

  constructor(env: ServiceEnv) {
    this.#env = env;
  }

  /** The answer to a message in wire form. Throws `ProtocolError` only where it is no query or cannot be read. */
  async handle(message: Uint8Array, by: AskedBy): Promise<Uint8Array> {
    const query = this.#reader.read(message);
    if (query === null) return headerOnly(message, RCODE.SERVFAIL);
    this.#env.log.debug(() => `[DNS] ${query.name} is asked for, type ${query.type}`);
    this.#running++;
    try {
      const step = await this.#answer(query);
      const answer = finishAnswer(query, step, roomFor(query, by));
      const observer = this.#env.observer();
      if (observer !== null && !step.fake) await this.#observe(observer, answer);
      return answer;
    } finally {
      if (--this.#running === 0) this.#onAnswered?.();
    }
  }

  /** Settles when no message is being answered. To be called once, when no new ones come. */
  answered(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => (this.#onAnswered = resolve));
  }

  async #answer(query: Query): Promise<Step> {
    if ((query.flags & OPCODE_MASK) !== 0) return fresh(bareAnswer(query, RCODE.NOTIMP));
    try {
      return await this.#fromHosts(query);
    } catch (error) {
      this.#env.log.debug(() => `[DNS] ${query.name}: ${messageOf(error)}`);
      return fresh(bareAnswer(query, RCODE.SERVFAIL));
    }
  }

  #fromHosts(query: Query): Step | Promise<Step> {
    const { hosts, mapping } = this.#env;
    const { type, name } = query;
    const asked = type === TYPE.A || type === TYPE.AAAA || type === TYPE.CNAME;
    const hit = hosts === null || !asked || query.class !== CLASS_IN ? null : hosts.find(name);
    if (hit === null) return this.#afterHosts(query);
    const { addresses } = hit;
    if (addresses === null) return this.#behindAlias(query, hit.name);
    if (type === TYPE.CNAME)
      return hit.name === name ? this.#afterHosts(query) : fresh(aliasAlone(query, hit.name));
    const packet = answerOf(query, recordsOf(addresses, type));
    mapping?.remember(name, packet, type);
    return fresh(packet);
  }

  async #behindAlias(query: Query, target: string): Promise<Step> {
    if (query.type === TYPE.CNAME) return fresh(aliasAlone(query, target));
    const inner = this.#reader.read(encodeQuestion(target, query.type));
    if (inner === null) return fresh(bareAnswer(query, RCODE.SERVFAIL));
    const found = await this.#afterHosts(inner);
    return fresh(behindAlias(query, nameBytes(target), HOSTS_TTL_SECONDS, found), found.fake);
  }

  #afterHosts(query: Query): Step | Promise<Step> {
    const { fakeIp, resolver, ipv6 } = this.#env;
    const fake = fakeIp?.answer(query) ?? null;
    if (fake instanceof Promise) return fake.then((packet) => fresh(packet, true));
    if (fake !== null) return fresh(fake, true);
    if (query.type === TYPE.AAAA && query.class === CLASS_IN && !ipv6) return fresh(bareAnswer(query, 0));
    const hit = resolver.cached(query);
    if (hit !== null) return this.#mapped(query, hit);
    return this.#resolve(query);
  }

  async #resolve(query: Query): Promise<Step> {
    return this.#mapped(query, await this.#env.resolver.answer(query, null));
  }

  #mapped(query: Query, { packet, takeSeconds }: Aged): Step {
    const { mapping } = this.#env;
    const { type } = query;
    if (mapping !== null && query.class === CLASS_IN && (type === TYPE.A || type === TYPE.AAAA))
      mapping.remember(query.name, packet, type);
    return { packet, takeSeconds, fake: false };
  }

  /** Holds the answer until the observer acted on it, but not for long. */
  async #observe(observer: Observer, answer: Uint8Array): Promise<void> {
    const observation = tryObservationOf(answer);
    if (observation === null) return;
    let timer: NodeJS.Timeout | undefined;
    try {
      const done = observer(observation);
      if (done === undefined) return;
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, OBSERVER_MS)));
      await Promise.race([done, late]);
    } catch (error) {
      this.#env.log.warning(() => `[DNS] ${observation.host}: observer failed: ${messageOf(error)}`);
    } finally {
      clearTimeout(timer);
    }
  }
}

function roomFor({ edns }: Query, { network, maxBytes = MAX_UDP_PAYLOAD }: AskedBy): number {
  if (network === "tcp") return MAX_MESSAGE_BYTES;
  return Math.min(edns?.udpBytes ?? PLAIN_UDP_BYTES, maxBytes);
}

function recordsOf(addresses: readonly Ip[], type: number) {
  const family = type === TYPE.A ? 4 : 6;
  return addresses
    .filter((ip) => familyOf(ip) === family)
    .map((ip) => ({ type, ttl: HOSTS_TTL_SECONDS, data: bytesOfIp(ip) }));
}

function aliasAlone(query: Query, target: string): Packet {
  return answerOf(query, [{ type: TYPE.CNAME, ttl: HOSTS_TTL_SECONDS, data: nameBytes(target) }]);
}

/** For a query whose question is missing: nothing of it can be repeated but the id. */
function headerOnly(message: Uint8Array, rcode: number): Uint8Array {
  const answer = Buffer.alloc(HEADER_BYTES);
  answer.set(message.subarray(0, 2));
  answer.writeUInt16BE(FLAG.QR | FLAG.RA | rcode, 2);
  return answer;
}
