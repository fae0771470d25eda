/** What main thread and workers call the kinds of wire, and how one is described to a worker. */

import type { Layer, SealedLayer, WireKind, WireStart } from "#core/wire-state.ts";
import type { WireDetails } from "#core/wire-details.ts";
import type { UnderlayRecipe } from "#core/wire-recipe.ts";

/** The kind of wire, by side: kept in the shared memory as a number. */
export const PLAIN = 0;
export const TLS = 1;
export const SEALED = 2;
/** A wire's code where its socket is not to be closed at the end: the main thread has further use for it. */
export const LEFT_OPEN = 3;
export const RECORDS = 5;
export const ENCRYPTED = 6;
export const VMESS = 7;
/** Its words: client, stream, bytes that the main thread has taken of it. */
export const QUIC = 8;
export type WireCode =
  | typeof PLAIN
  | typeof TLS
  | typeof SEALED
  | typeof RECORDS
  | typeof ENCRYPTED
  | typeof VMESS
  | typeof QUIC;

export const KINDS: Readonly<Record<WireKind, WireCode>> = {
  plain: PLAIN,
  tls: TLS,
  records: RECORDS,
  sealed: SEALED,
  encrypted: ENCRYPTED,
  vmess: VMESS,
  quic: QUIC,
};

/**
 * Numbers that a wire gets at its start, and behind these the contexts of a layer of sealed messages over it, 0 where there is
 * none; addresses of this process fit into a double.
 */
export const WIRE_NUMBERS = 12;
export const LAYER_CONTEXTS = 8;

/** What each form is as a wire of its own. */
export const LAYER_FORMS = { sealed: SEALED, vmess: VMESS, encrypted: ENCRYPTED } as const;

/** Of its numbers so many are contexts. */
const CONTEXTS = { sealed: 2, vmess: 4, encrypted: 2 } as const;

/** What is to be freed of a layer; each 0 or a context. */
export const contextsOf = ({ form, numbers }: SealedLayer): readonly number[] =>
  numbers.slice(0, CONTEXTS[form]);

/** How the main thread describes a wire to the worker. */
export interface WireSpec {
  readonly kind: WireCode;
  /** At most `LAYER_CONTEXTS`; their meaning is the kind's. */
  readonly numbers: readonly number[];
  /** Bytes for the port, whatever they are to it (read from the socket and not opened yet); null: none. */
  readonly unread: Uint8Array | null;
  /** From the wire upwards; absent: none. */
  readonly layers?: readonly Layer[];
  readonly details?: WireDetails;
  /** As `WireStart` has it. */
  readonly under?: UnderlayRecipe;
}

/** Of a wire that no stream was before. */
export const specOf = (start: WireStart): WireSpec => ({ ...start, kind: KINDS[start.kind] });

/** One that the main thread has had. */
export interface HandedWire extends WireSpec {
  /** The worker's own from the moment that it is added; -1: the wire has none. */
  readonly fd: number;
}

/** What goes with a wire by message. */
export type WireMessage = Required<Pick<WireSpec, "unread" | "layers" | "details">> & Pick<WireSpec, "under">;

export const NO_MESSAGE: WireMessage = { unread: null, layers: [], details: {} };
