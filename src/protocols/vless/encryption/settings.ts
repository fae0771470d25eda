/**
 * The settings `encryption` of a client and `decryption` of a server:
 * `mlkem768x25519plus.APPEARANCE.TIME[.PADDING …].KEY[.KEY …]`. No message shows a key.
 */
import { Fault, show } from "#core/fields.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { type HopPrivateKey, type HopPublicKey, readHopPrivateKey, readHopPublicKey } from "./keys.ts";
import { DEFAULT_PADDING, type PaddingPlan, readPadding } from "./padding.ts";

const METHOD = "mlkem768x25519plus";

/** How it looks on the wire: TLS records; the same with masked public keys; random bytes. */
export type Appearance = "native" | "xorpub" | "random";
const APPEARANCES: readonly Appearance[] = ["native", "xorpub", "random"];

export interface ClientEncryption {
  readonly appearance: Appearance;
  /** Tickets are used (`0rtt`). */
  readonly resumes: boolean;
  readonly padding: PaddingPlan;
  /** Relays in order, the server last. Never empty. */
  readonly hops: readonly HopPublicKey[];
}

export interface ServerEncryption {
  readonly appearance: Appearance;
  /** How long a ticket lives: a random time between the two; 0 and 0: there are none. */
  readonly ticketSeconds: { readonly from: number; readonly to: number };
  readonly padding: PaddingPlan;
  readonly hops: readonly HopPrivateKey[];
}

const MOST_TICKET_SECONDS = 0xffff;
/** A padding part is shorter than any key. */
const SHORTEST_KEY = 20;

/** Null: `none`, nothing is encrypted. */
export function readClientEncryption(text: string): ClientEncryption | null | Fault {
  const parts = split(text);
  if (parts === null || parts instanceof Fault) return parts;
  const { appearance, time, padding } = parts;
  if (time !== "0rtt" && time !== "1rtt") return new Fault(`expected 0rtt or 1rtt, got ${show(time)}`);
  const hops = readKeys(parts.keys, readHopPublicKey, "32 bytes (X25519) or 1,184 bytes (ML-KEM-768)");
  return hops instanceof Fault ? hops : { appearance, resumes: time === "0rtt", padding, hops };
}

/** Null: `none`. */
export function readServerEncryption(text: string): ServerEncryption | null | Fault {
  const parts = split(text);
  if (parts === null || parts instanceof Fault) return parts;
  const { appearance, padding } = parts;
  const ticketSeconds = readTicketSeconds(parts.time);
  if (ticketSeconds instanceof Fault) return ticketSeconds;
  const hops = readKeys(
    parts.keys,
    readHopPrivateKey,
    "32 bytes (X25519) or a seed of 64 bytes (ML-KEM-768)",
  );
  return hops instanceof Fault ? hops : { appearance, ticketSeconds, padding, hops };
}

interface Parts {
  readonly appearance: Appearance;
  readonly time: string;
  readonly padding: PaddingPlan;
  readonly keys: readonly string[];
}

function split(text: string): Parts | null | Fault {
  if (text === "" || text === "none") return null;
  const [method = "", appearance = "", time = "", ...rest] = text.split(".");
  if (method !== METHOD)
    return new Fault(
      `expected none or ${METHOD}.…, got ${show(method.slice(0, 24))}${suggestion(method, [METHOD])}`,
    );
  const known = APPEARANCES.find((each) => each === appearance);
  if (known === undefined)
    return new Fault(
      `expected native, xorpub or random behind ${METHOD}, got ${show(appearance.slice(0, 24))}`,
    );
  const firstKey = rest.findIndex((part) => part.length >= SHORTEST_KEY);
  if (firstKey < 0) return new Fault(`expected a key in base64url at the end of ${METHOD}.…`);
  const plan = firstKey === 0 ? DEFAULT_PADDING : readPadding(rest.slice(0, firstKey));
  if (plan instanceof Fault) return plan;
  return { appearance: known, time, padding: plan, keys: rest.slice(firstKey) };
}

const BASE64URL = /^[A-Za-z0-9_-]+$/;

function readKeys<T>(
  texts: readonly string[],
  read: (raw: Buffer) => T | null,
  expected: string,
): readonly T[] | Fault {
  const keys: T[] = [];
  for (const [index, text] of texts.entries()) {
    const key = BASE64URL.test(text) ? read(Buffer.from(text, "base64url")) : null;
    if (key === null) return new Fault(`key ${index + 1}: expected base64url of ${expected}`);
    keys.push(key);
  }
  return keys;
}

const SECONDS = /^(\d{1,5})(?:-(\d{1,5}))?s?$/;

/** `600s`: each ticket lives half of it to all of it; `300-600s`: between the two; `0s`: no tickets. */
function readTicketSeconds(text: string): ServerEncryption["ticketSeconds"] | Fault {
  const [, first = "", second] = SECONDS.exec(text) ?? [];
  const to = Number(second ?? first);
  const from = second === undefined ? Math.ceil(to / 2) : Number(first);
  if (first === "" || from > to || to > MOST_TICKET_SECONDS)
    return new Fault(
      `expected the life of tickets such as 600s, 300-600s or 0s, at most ${MOST_TICKET_SECONDS}s, got ${show(text)}`,
    );
  return { from, to };
}

/** The setting of clients that fits a server's. */
export function clientSetting({ appearance, ticketSeconds, hops }: ServerEncryption): string {
  const time = ticketSeconds.to === 0 ? "1rtt" : "0rtt";
  return [METHOD, appearance, time, ...hops.map(({ raw }) => raw.toString("base64url"))].join(".");
}
