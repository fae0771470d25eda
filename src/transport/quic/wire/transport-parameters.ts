/** What each side says of itself within the TLS handshake (RFC 9000 §18, RFC 9221 §3): ID(vi) LENGTH(vi) VALUE, in any order. */
import { QuicFault, TRANSPORT_PARAMETER_ERROR } from "#transport/quic/fault.ts";
import { WireReader } from "./reader.ts";
import { varintBytes, WireWriter } from "./writer.ts";
import { MAX_CID_BYTES } from "./header.ts";

const ORIGINAL_DESTINATION = 0x00;
const RESET_TOKEN = 0x02;
const INITIAL_SOURCE = 0x0f;
const RETRY_SOURCE = 0x10;
const DISABLE_MIGRATION = 0x0c;
export const RESET_TOKEN_BYTES = 16;

/** Numbers, by their ids; bounds as the RFC has them. */
const NUMBERS = {
  idleTimeoutMs: { id: 0x01, initial: 0, least: 0, most: Number.MAX_SAFE_INTEGER },
  maxUdpPayload: { id: 0x03, initial: 65_527, least: 1200, most: Number.MAX_SAFE_INTEGER },
  maxData: { id: 0x04, initial: 0, least: 0, most: Number.MAX_SAFE_INTEGER },
  maxStreamDataBidiLocal: { id: 0x05, initial: 0, least: 0, most: Number.MAX_SAFE_INTEGER },
  maxStreamDataBidiRemote: { id: 0x06, initial: 0, least: 0, most: Number.MAX_SAFE_INTEGER },
  maxStreamDataUni: { id: 0x07, initial: 0, least: 0, most: Number.MAX_SAFE_INTEGER },
  maxStreamsBidi: { id: 0x08, initial: 0, least: 0, most: Number.MAX_SAFE_INTEGER },
  maxStreamsUni: { id: 0x09, initial: 0, least: 0, most: Number.MAX_SAFE_INTEGER },
  ackDelayExponent: { id: 0x0a, initial: 3, least: 0, most: 20 },
  maxAckDelayMs: { id: 0x0b, initial: 25, least: 0, most: 2 ** 14 - 1 },
  activeConnectionIds: { id: 0x0e, initial: 2, least: 2, most: Number.MAX_SAFE_INTEGER },
  maxDatagramFrame: { id: 0x20, initial: 0, least: 0, most: Number.MAX_SAFE_INTEGER },
} as const;
type NumberName = keyof typeof NUMBERS;
const NUMBER_NAMES = [
  "idleTimeoutMs",
  "maxUdpPayload",
  "maxData",
  "maxStreamDataBidiLocal",
  "maxStreamDataBidiRemote",
  "maxStreamDataUni",
  "maxStreamsBidi",
  "maxStreamsUni",
  "ackDelayExponent",
  "maxAckDelayMs",
  "activeConnectionIds",
  "maxDatagramFrame",
] as const satisfies readonly NumberName[];
const NAME_OF = new Map<number, NumberName>(NUMBER_NAMES.map((name) => [NUMBERS[name].id, name]));

export type TransportNumbers = Readonly<Record<NumberName, number>>;

export interface TransportParameters extends TransportNumbers {
  /** Null: not said. */
  readonly originalDestination: Uint8Array | null;
  readonly initialSource: Uint8Array | null;
  readonly retrySource: Uint8Array | null;
  readonly resetToken: Uint8Array | null;
}

export const UNSAID_NUMBERS: TransportNumbers = {
  idleTimeoutMs: NUMBERS.idleTimeoutMs.initial,
  maxUdpPayload: NUMBERS.maxUdpPayload.initial,
  maxData: NUMBERS.maxData.initial,
  maxStreamDataBidiLocal: NUMBERS.maxStreamDataBidiLocal.initial,
  maxStreamDataBidiRemote: NUMBERS.maxStreamDataBidiRemote.initial,
  maxStreamDataUni: NUMBERS.maxStreamDataUni.initial,
  maxStreamsBidi: NUMBERS.maxStreamsBidi.initial,
  maxStreamsUni: NUMBERS.maxStreamsUni.initial,
  ackDelayExponent: NUMBERS.ackDelayExponent.initial,
  maxAckDelayMs: NUMBERS.maxAckDelayMs.initial,
  activeConnectionIds: NUMBERS.activeConnectionIds.initial,
  maxDatagramFrame: NUMBERS.maxDatagramFrame.initial,
};

/** Copies of what the peer said. Throws `QuicFault` for what a peer of this `role` must not say. */
export function decodeTransportParameters(bytes: Uint8Array, role: "client" | "server"): TransportParameters {
  const reader = new WireReader().reset(bytes);
  const numbers: Record<NumberName, number> = { ...UNSAID_NUMBERS };
  const ids = new Map<number, Uint8Array>();
  const seen = new Set<number>();
  try {
    while (reader.left > 0) {
      const id = reader.varint();
      const value = reader.take(reader.varint());
      if (seen.has(id)) throw refused(`parameter ${id} is there twice`);
      seen.add(id);
      const name = NAME_OF.get(id);
      if (name !== undefined) numbers[name] = numberOf(name, value);
      else if (id === DISABLE_MIGRATION && value.length > 0) throw refused("parameter 12 has a value");
      else if (id <= RETRY_SOURCE) ids.set(id, value.slice());
    }
  } catch (error) {
    if (error instanceof QuicFault && error.transportCode !== TRANSPORT_PARAMETER_ERROR)
      throw refused(error.message);
    throw error;
  }
  const resetToken = ids.get(RESET_TOKEN) ?? null;
  if (resetToken !== null && resetToken.length !== RESET_TOKEN_BYTES) throw refused("a short reset token");
  const isServers = (id: number): boolean => ids.has(id) && role === "client";
  if (isServers(ORIGINAL_DESTINATION) || isServers(RESET_TOKEN) || isServers(RETRY_SOURCE))
    throw refused("a client says what only servers may");
  return {
    ...numbers,
    originalDestination: idOf(ids, ORIGINAL_DESTINATION),
    initialSource: idOf(ids, INITIAL_SOURCE),
    retrySource: idOf(ids, RETRY_SOURCE),
    resetToken,
  };
}

function idOf(ids: ReadonlyMap<number, Uint8Array>, id: number): Uint8Array | null {
  const value = ids.get(id) ?? null;
  if (value !== null && value.length > MAX_CID_BYTES) throw refused(`parameter ${id} is no connection id`);
  return value;
}

function numberOf(name: NumberName, value: Uint8Array): number {
  const { least, most } = NUMBERS[name];
  const reader = new WireReader().reset(value);
  const number = reader.varint();
  if (reader.left > 0 || number < least || number > most) throw refused(`${name} of ${number}`);
  return number;
}

function refused(why: string): QuicFault {
  return new QuicFault(TRANSPORT_PARAMETER_ERROR, `transport parameters: ${why}`);
}

/** Numbers that are not given are not said. */
export function encodeTransportParameters(
  parameters: Partial<TransportParameters> & { readonly initialSource: Uint8Array },
): Uint8Array {
  const out = new WireWriter(new Uint8Array(512));
  for (const name of NUMBER_NAMES) {
    const value = parameters[name];
    if (value === undefined) continue;
    out.varint(NUMBERS[name].id);
    out.varint(varintBytes(value));
    out.varint(value);
  }
  const put = (id: number, value: Uint8Array | null | undefined): void => {
    if (value === null || value === undefined) return;
    out.varint(id);
    out.varint(value.length);
    out.put(value);
  };
  put(ORIGINAL_DESTINATION, parameters.originalDestination);
  put(RESET_TOKEN, parameters.resetToken);
  put(INITIAL_SOURCE, parameters.initialSource);
  put(RETRY_SOURCE, parameters.retrySource);
  return out.bytes.slice(0, out.at);
}
