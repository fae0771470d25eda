/** What the two processes of an upgrade say to each other; README.md has the order. */
import * as z from "zod";
import { MOST_PACKET_BYTES } from "#platform/handover.ts";
import type { AuditDraft } from "#core/audit.ts";
import type { EventDraft } from "#core/events.ts";

/** Two processes with different numbers do not know each other's messages. */
export const PROTOCOL = 2;

const text = z.string().max(4096);
const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const mark = z.tuple([text, text.nullable()]);

/** Of each store: its schema, and the tables that it may have. */
const formats = z.record(text, z.object({ schema: count, parts: z.array(text) }));
export type Formats = z.infer<typeof formats>;

const about = { protocol: count, version: text, formats };

const sums = z.object({
  policies: z.array(text),
  hour: count,
  counted: z.tuple([z.number(), z.number(), z.number(), z.number()]),
});

const userTotals = z.tuple([text, text, count, count]);

const MESSAGES = {
  // of the new process
  hello: z.object({ kind: z.literal("hello"), ...about }),
  checked: z.object({ kind: z.literal("checked") }),
  ready: z.object({ kind: z.literal("ready") }),
  started: z.object({ kind: z.literal("started") }),
  failed: z.object({ kind: z.literal("failed"), reason: text }),
  taken: z.object({ kind: z.literal("taken"), seq: count, barred: z.array(z.tuple([text, text])) }),
  /** The answer to `fake`; null: it gets none. */
  faked: z.object({ kind: z.literal("faked"), seq: count, ip: text.nullable() }),
  // of the old one
  begin: z.object({ kind: z.literal("begin"), sockets: count, ...about }),
  socket: z.object({
    kind: z.literal("socket"),
    key: text,
    endpoint: z.object({ ip: text, port: count }).nullable(),
    detail: text.nullable().default(null),
  }),
  /** A piece of what is remembered of what the key names, as base64; in order, before `go`. */
  state: z.object({ kind: z.literal("state"), key: text, piece: z.base64() }),
  stores: z.object({ kind: z.literal("stores"), totals: z.tuple([count, count]) }),
  go: z.object({ kind: z.literal("go") }),
  /** Asks for the fake address of a name. */
  fake: z.object({
    kind: z.literal("fake"),
    seq: count,
    family: z.union([z.literal(4), z.literal(6)]),
    host: text,
  }),
  left: z.object({ kind: z.literal("left") }),
  /** `users` are totals since the counters began, `policies` what was counted since the last message. */
  counts: z.object({
    kind: z.literal("counts"),
    seq: count,
    users: z.array(userTotals),
    policies: z.array(sums),
    totals: z.tuple([count, count]),
    isLast: z.boolean(),
  }),
  event: z.object({
    kind: z.literal("event"),
    draft: z.custom<EventDraft>((value) => typeof value === "object" && value !== null),
    mark: mark.nullable(),
  }),
  /** A change that was made in the old process, for the audit log. */
  audit: z.object({
    kind: z.literal("audit"),
    draft: z.custom<AuditDraft>((value) => typeof value === "object" && value !== null),
  }),
};

const message = z.discriminatedUnion("kind", [
  MESSAGES.hello,
  MESSAGES.checked,
  MESSAGES.ready,
  MESSAGES.started,
  MESSAGES.failed,
  MESSAGES.taken,
  MESSAGES.faked,
  MESSAGES.begin,
  MESSAGES.socket,
  MESSAGES.state,
  MESSAGES.stores,
  MESSAGES.go,
  MESSAGES.fake,
  MESSAGES.left,
  MESSAGES.counts,
  MESSAGES.event,
  MESSAGES.audit,
]);

export type Message = z.infer<typeof message>;
export type MessageOf<Kind extends Message["kind"]> = Extract<Message, { kind: Kind }>;

/** Throws `RangeError` for what is too long for a packet. */
export function encodeMessage(said: Message): Uint8Array {
  const bytes = Buffer.from(JSON.stringify(said));
  if (bytes.length > MOST_PACKET_BYTES)
    throw new RangeError(`${said.kind}: a message of ${bytes.length} bytes`);
  return bytes;
}

/** Throws for what is no message. */
export function decodeMessage(bytes: Uint8Array): Message {
  return message.parse(JSON.parse(new TextDecoder().decode(bytes)));
}
