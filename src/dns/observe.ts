/** What kernel-direct learns from an answer given to a client (kernel-direct.md §2.2, dns.md §14). */
import type { Ip } from "#core/session.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import { decodeMessage, type Message, type ResourceRecord } from "./message.ts";
import { canonicalName, readName } from "./name.ts";
import { recordCountOf } from "./packet.ts";
import { CLASS_IN, RCODE_MASK, FLAG, TYPE } from "./types.ts";
import { ProtocolError } from "#core/errors.ts";

export interface Observation {
  /** The name of the question, not the end of its alias chain. */
  readonly host: string;
  readonly addresses: readonly { readonly ip: Ip; readonly ttlMs: number }[];
}

/** The answer is held until the promise settles, for 200 ms at most. Errors are logged and cost the client nothing. */
export type Observer = (observation: Observation) => void | Promise<void>;

const MAX_ALIAS_RECORDS = 256;
const MAX_STEPS = 64;
const MAX_ADDRESSES = 64;
/** Of an answer that is looked at; one with thousands would take tens of milliseconds each time that it is given. */
const MAX_RECORDS = 1024;
const MIN_TTL_SECONDS = 1;
const MAX_TTL_SECONDS = 3600;

/** Null where the answer proves nothing: no addresses, cut, an error, or an ambiguous alias chain. */
export function observationOf(answer: Uint8Array): Observation | null {
  if (recordCountOf(answer) > MAX_RECORDS) return null;
  const message = decodeMessage(answer);
  const [question, ...others] = message.questions;
  if (question === undefined || others.length > 0 || question.class !== CLASS_IN) return null;
  if (question.type !== TYPE.A && question.type !== TYPE.AAAA) return null;
  if ((message.flags & FLAG.QR) === 0 || (message.flags & (FLAG.TC | RCODE_MASK)) !== 0) return null;
  const host = canonicalName(question.name);
  const end = followAliases(message, host);
  if (end === null) return null;
  const found = new Map<Ip, number>();
  for (const record of [...message.answers, ...message.additionals]) {
    if (record.type !== question.type || record.class !== CLASS_IN) continue;
    if (canonicalName(record.name) !== end.name) continue;
    const ip = ipFromBytes(record.data);
    found.set(ip, Math.min(found.get(ip) ?? Infinity, record.ttl, end.ttl));
  }
  if (found.size === 0 || found.size > MAX_ADDRESSES) return null;
  const clamp = (ttl: number) => Math.min(MAX_TTL_SECONDS, Math.max(MIN_TTL_SECONDS, ttl)) * 1000;
  return { host, addresses: Array.from(found, ([ip, ttl]) => ({ ip, ttlMs: clamp(ttl) })) };
}

/** A CNAME or DNAME with its names as they are compared. */
interface Alias {
  readonly owner: string;
  readonly target: string;
  readonly ttl: number;
  /** DNAME: for names below its owner, whose ends it replaces. */
  readonly isOfTree: boolean;
}

interface ChainEnd {
  readonly name: string;
  /** The smallest TTL on the way. */
  readonly ttl: number;
}

function followAliases({ answers }: Message, host: string): ChainEnd | null {
  const records = answers.filter(
    ({ type, class: klass }) => klass === CLASS_IN && (type === TYPE.CNAME || type === TYPE.DNAME),
  );
  if (records.length > MAX_ALIAS_RECORDS) return null;
  const aliases = records.map(aliasOf);
  let end: ChainEnd = { name: host, ttl: Infinity };
  const seen = new Set<string>();
  for (let step = 0; step <= MAX_STEPS; step++) {
    const { name } = end;
    if (seen.has(name)) return null;
    seen.add(name);
    const fitting = aliases.filter((alias) => appliesTo(alias, name));
    const [first] = fitting;
    if (first === undefined) return end;
    const target = targetOf(first, name);
    if (fitting.some((alias) => targetOf(alias, name) !== target)) return null;
    end = { name: target, ttl: Math.min(end.ttl, ...fitting.map(({ ttl }) => ttl)) };
  }
  return null;
}

function aliasOf({ name, type, data, ttl }: ResourceRecord): Alias {
  const target = canonicalName(readName(data, 0).name);
  return { owner: canonicalName(name), target, ttl, isOfTree: type === TYPE.DNAME };
}

function appliesTo({ owner, isOfTree }: Alias, name: string): boolean {
  return isOfTree ? name.endsWith(`.${owner}`) : owner === name;
}

function targetOf({ owner, target, isOfTree }: Alias, name: string): string {
  return isOfTree ? `${name.slice(0, -owner.length)}${target}` : target;
}

/** A failed observation must not fail the answer; an answer that cannot be read was not to be learnt from. */
export function tryObservationOf(answer: Uint8Array): Observation | null {
  try {
    return observationOf(answer);
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}
