/** ClientHellos from templates. */
import { randomBytes, randomInt } from "node:crypto";
import { byteAt, itemAt } from "#lib/at.ts";
import { EXTENSION } from "#transport/tls13/extensions.ts";
import { type KeyShare, openKeyShare, openX25519Share } from "#transport/tls13/key-exchange.ts";
import type { ClientHelloMessage, Retry } from "#transport/tls13/offered-hello.ts";
import type { Session } from "#transport/tls13/sessions.ts";
import { type Drawn, encodeHello, RANDOM_BYTES } from "./encode-hello.ts";
import { type ExtensionTemplate, type HelloTemplate, KEY_EXCHANGE_MODES } from "./template.ts";

const NOTHING = Buffer.alloc(0);

export interface HelloOptions {
  /** For SNI; empty: none. */
  readonly serverName: string;
  /** Takes the place of the template's ALPN; null: the template's own, empty: no ALPN. */
  readonly protocols: readonly string[] | null;
  /** To be resumed; absent: none. Only for a template that `canResume`. */
  readonly session?: Session | null;
}

/** The browser says that it resumes sessions with a fresh key exchange (psk_dhe_ke, RFC 8446 §4.2.9). */
export function canResume({ extensions }: HelloTemplate): boolean {
  return extensions.includes(KEY_EXCHANGE_MODES);
}

/** Throws where the template names a group that is not built. */
export function buildHello(template: HelloTemplate, options: HelloOptions): ClientHelloMessage {
  const drawn = draw(template);
  const opened = openShares(template);
  const { serverName, protocols } = options;
  const make = (own: readonly KeyShare[], retry: Retry | null): ClientHelloMessage => {
    const session = retry?.dropsSession === true ? null : (options.session ?? null);
    return {
      message: encodeHello(template, { serverName, protocols, session }, { drawn, shares: own, retry }),
      shares: own,
      again: (next) => make(next.share === null ? own : [next.share], next),
      ...(session === null ? {} : { session }),
    };
  };
  return make(opened, null);
}

function openShares({ extensions }: HelloTemplate): KeyShare[] {
  const opened: KeyShare[] = [];
  for (const one of extensions) {
    if (one.kind !== "shares") continue;
    for (const group of one.groups) if (group !== "grease") opened.push(openShare(group));
  }
  return opened;
}

function openShare(group: number): KeyShare {
  const share = openKeyShare(group);
  if (share === null) throw new Error(`a template names the group ${group}, which is not built`);
  return share;
}

function draw(template: HelloTemplate): Drawn {
  const first = drawGrease();
  let last = drawGrease();
  while (last === first) last = drawGrease();
  const ech = template.extensions.find((one) => one.kind === "ech") ?? null;
  const payload = ech === null ? 0 : (ech.payloads[randomInt(ech.payloads.length)] ?? 144);
  const random = randomBytes(2 * RANDOM_BYTES + 1 + payload); // a call costs more than the bytes
  return {
    random: random.subarray(0, RANDOM_BYTES),
    sessionId: random.subarray(RANDOM_BYTES, 2 * RANDOM_BYTES),
    greaseSuite: drawGrease(),
    greaseGroup: drawGrease(),
    greaseVersion: drawGrease(),
    greaseExtensions: [first, last],
    order: template.isShuffled ? shuffle(template) : template.extensions,
    ech: drawEch(ech, random.subarray(2 * RANDOM_BYTES)),
  };
}

/** 0xXaXa (RFC 8701 §2). */
function drawGrease(): number {
  return (randomInt(16) * 16 + 10) * 0x0101;
}

/** Which ones change places, by template. */
const movable = new WeakMap<HelloTemplate, readonly number[]>();

/** All but GREASE and padding change places. */
function shuffle(template: HelloTemplate): ExtensionTemplate[] {
  const order = [...template.extensions];
  const places = movable.get(template) ?? placesOf(template);
  for (let last = places.length - 1; last > 0; last--) {
    const [one = 0, two = 0] = [places[last], places[randomInt(last + 1)]];
    const moved = itemAt(order, one);
    order[one] = itemAt(order, two);
    order[two] = moved;
  }
  return order;
}

function placesOf(template: HelloTemplate): readonly number[] {
  const stays = ({ kind }: ExtensionTemplate): boolean => kind === "grease" || kind === "padding";
  const places = template.extensions.flatMap((one, at) => (stays(one) ? [] : [at]));
  movable.set(template, places);
  return places;
}

/** The whole extension: TYPE(2) LENGTH(2) OUTER(1)=0 KDF(2)=1 AEAD(2) CONFIG(1) ENC(2+32) PAYLOAD(2+n). `random`: configuration and payload. */
function drawEch(ech: Extract<ExtensionTemplate, { kind: "ech" }> | null, random: Buffer): Buffer {
  if (ech === null) return NOTHING;
  const aead = ech.aeads[randomInt(ech.aeads.length)] ?? 1;
  using share = openX25519Share();
  const [key, payload] = [share.share, random.subarray(1)];
  const bytes = Buffer.allocUnsafe(ECH_HEAD_BYTES + 2 + key.length + 2 + payload.length);
  bytes.writeUInt16BE(EXTENSION.encryptedClientHello, 0);
  bytes.writeUInt16BE(bytes.length - 4, 2);
  bytes[4] = 0;
  bytes.writeUInt16BE(1, 5);
  bytes.writeUInt16BE(aead, 7);
  bytes[9] = byteAt(random, 0);
  bytes.set(key, bytes.writeUInt16BE(key.length, ECH_HEAD_BYTES));
  const at = ECH_HEAD_BYTES + 2 + key.length;
  bytes.set(payload, bytes.writeUInt16BE(payload.length, at));
  return bytes;
}
const ECH_HEAD_BYTES = 10;
