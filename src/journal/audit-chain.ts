/**
 * Each entry of the audit log carries the hash of the one before. A changed, removed or swapped entry breaks the chain at
 * its successor; the newest has its hash in a record of its own, and so has the last of those whose time is over.
 */
import { createHash } from "node:crypto";
import type { AuditDraft, AuditEntry, AuditHead, AuditVerdict } from "#core/audit.ts";
import type { JsonValue } from "#core/control-configs.ts";

const NO_HASH = "0".repeat(64);
export const EMPTY_HEAD: AuditHead = { seq: 0, hash: NO_HASH };

/** A longer entry says of what it had only how long and which it was. */
const MOST_LINE_BYTES = 4096;
const MOST_TEXT_CHARACTERS = 256;

export interface Link {
  readonly seq: number;
  readonly line: string;
  readonly hash: string;
}

export function nextLink(draft: AuditDraft, head: AuditHead, atMs: number): Link {
  const seq = head.seq + 1;
  const line = lineOf(bounded(draft), seq, head.hash, atMs);
  return { seq, line, hash: hashOf(line) };
}

export function hashOf(line: string): string {
  return createHash("sha256").update(line).digest("hex");
}

/** Throws where it is no line of ours. */
export function entryOf(line: string, hash: string): AuditEntry {
  const { at, ...rest }: StoredEntry = JSON.parse(line);
  return { ...rest, atMs: at, hash };
}

type StoredEntry = AuditDraft & { readonly seq: number; readonly at: number; readonly previous: string };

function lineOf(draft: AuditDraft, seq: number, previous: string, atMs: number): string {
  const { actor, from, request, action, target, listener, user, before, after } = draft;
  // Members in one order, and those that are undefined left out: the line is what is hashed.
  const about = { action, target, listener, user };
  return JSON.stringify({ seq, at: atMs, actor, from, request, ...about, before, after, previous });
}

function bounded(draft: AuditDraft): AuditDraft {
  const cut = (text: string): string => text.slice(0, MOST_TEXT_CHARACTERS);
  const short = { ...draft, from: cut(draft.from), target: cut(draft.target), action: cut(draft.action) };
  if (Buffer.byteLength(JSON.stringify(short)) <= MOST_LINE_BYTES - 2 * NO_HASH.length) return short;
  const { before, after, ...rest } = short;
  return {
    ...rest,
    ...(before === undefined ? {} : { before: summaryOf(before) }),
    ...(after === undefined ? {} : { after: summaryOf(after) }),
  };
}

function summaryOf(value: JsonValue): JsonValue {
  const text = JSON.stringify(value);
  return { left_out_bytes: Buffer.byteLength(text), sha256: hashOf(text) };
}

/** What the log keeps of its two ends. */
export interface Ends {
  readonly head: AuditHead;
  /** The last entry whose time is over. */
  readonly anchor: AuditHead;
}

/** More are not listed. */
const MOST_FAULTS = 20;

/** `keyed`: with the number that an entry is stored under. `ends` null: of a file that has the lines alone. */
export function verifyLines(
  keyed: Iterable<readonly [seq: number | null, line: string]>,
  ends: Ends | null,
): AuditVerdict {
  const faults: string[] = [];
  const fault = (text: string): void => void (faults.length < MOST_FAULTS && faults.push(text));
  let last = ends?.anchor ?? null;
  let first = 0;
  let entries = 0;
  for (const [key, line] of keyed) {
    const read = sequenceOf(line);
    if (read === null) {
      fault(`entry ${key ?? entries + 1}: it is no entry of an audit log`);
      continue;
    }
    const { seq, previous } = read;
    if (entries++ === 0) first = key ?? seq;
    if (key !== null && seq !== key) fault(`entry ${key}: it is entry ${seq}, put in another place`);
    if (last !== null && seq !== last.seq + 1)
      fault(`entry ${seq}: it follows entry ${last.seq}; ${gapText(last.seq, seq)}`);
    else if (last !== null && previous !== last.hash)
      fault(`entry ${seq}: the entry before it is not the one that it was written behind`);
    last = { seq, hash: hashOf(line) };
  }
  const end = last ?? EMPTY_HEAD;
  const { head = end } = ends ?? {};
  if (end.seq !== head.seq) fault(`the log ends with entry ${end.seq}; entry ${head.seq} was written last`);
  else if (end.hash !== head.hash) fault(`entry ${end.seq}: it is not as it was written`);
  return { head, first, entries, faults };
}

function gapText(last: number, seq: number): string {
  return seq > last + 1
    ? `${seq - last - 1} between them are gone`
    : "their order is not that of the writing";
}

function sequenceOf(line: string): { readonly seq: number; readonly previous: string } | null {
  try {
    const { seq, previous }: { seq?: unknown; previous?: unknown } = JSON.parse(line);
    return typeof seq === "number" && typeof previous === "string" ? { seq, previous } : null;
  } catch {
    return null;
  }
}
