/**
 * What the main thread and a thread of QUIC say to each other about listeners, their clients and the streams of these. Each
 * side has its messages of one turn sent as one array, in order. Clients have numbers that the thread gives out; streams of
 * a client have their QUIC ids, those that the main thread opens negative numbers of its own. Bytes are given away.
 */
import type { Endpoint } from "#core/endpoint.ts";
import type { ClientAuthType } from "#core/tls.ts";
import type { CongestionChoice } from "#transport/quic/congestion/choice.ts";
import type { Lane } from "#transport/quic/server/lanes.ts";
import type { TransportNumbers } from "#transport/quic/wire/transport-parameters.ts";

/** What the packet filter of a listener is made of. */
export interface FilterSpec {
  readonly obfs: "" | "salamander" | "gecko";
  readonly "obfs-password": string;
  readonly "obfs-min-packet-size": number;
  readonly "obfs-max-packet-size": number;
}

/** A listener as values, for the thread that runs it. */
export interface ThreadedSpec {
  readonly numbers: Partial<TransportNumbers>;
  readonly abortCode: number;
  readonly closeCode: number;
  readonly congestion: CongestionChoice;
  readonly clientAuthType: ClientAuthType;
  /** Null: there is none. */
  readonly filter: FilterSpec | null;
}

/** Of one stream. */
export interface StreamName {
  readonly client: number;
  readonly stream: number;
}

/** The other side has read so much; said now and then, and not of messages that say this. */
export interface Acknowledged {
  readonly messages: number;
  readonly bytes: number;
}

export type ToThread =
  | (Acknowledged & { readonly op: "read" })
  | {
      readonly op: "listen";
      readonly socket: number;
      /** Of the main thread, which keeps it open until the thread has closed its own. */
      readonly fd: number;
      readonly local: Endpoint;
      readonly endpoint: number;
      readonly spec: ThreadedSpec;
      readonly context: bigint;
      readonly lane: Lane;
    }
  /** Another context of TLS from now on; 0: no client gets in any more. Answered by `renewed`. */
  | { readonly op: "context"; readonly endpoint: number; readonly context: bigint }
  | { readonly op: "pause" | "close"; readonly socket: number }
  | { readonly op: "settle"; readonly client: number }
  | { readonly op: "widen"; readonly client: number; readonly bytes: number }
  | { readonly op: "congestion"; readonly client: number; readonly choice: CongestionChoice }
  | { readonly op: "end"; readonly client: number; readonly code: number; readonly reason: string }
  /** As of `DatagramPack`. */
  | { readonly op: "datagrams"; readonly client: number; readonly bytes: Uint8Array<ArrayBuffer> }
  | {
      readonly op: "export";
      readonly client: number;
      readonly number: number;
      readonly label: Uint8Array;
      readonly context: Uint8Array;
      readonly size: number;
    }
  | (StreamName & { readonly op: "open"; readonly isBidi: boolean })
  | (StreamName & { readonly op: "write"; readonly bytes: Uint8Array<ArrayBuffer> })
  | (StreamName & { readonly op: "finish" })
  | (StreamName & { readonly op: "destroy"; readonly code: number; readonly isFault: boolean })
  /** So many bytes more have been taken by the stream's reader; the first one says that there is one. */
  | (StreamName & { readonly op: "took"; readonly bytes: number });

/** Where a client is, and what of it changes. */
export interface ClientState {
  readonly client: number;
  readonly peer: Endpoint;
  readonly maxDatagramBytes: number;
}

export type FromThread =
  | (Acknowledged & { readonly op: "read" })
  /** `fd`: the thread's own, for the time behind its death. */
  | { readonly op: "listening"; readonly socket: number; readonly fd: number }
  | { readonly op: "renewed"; readonly endpoint: number }
  | { readonly op: "closed"; readonly socket: number }
  | (ClientState & { readonly op: "client"; readonly endpoint: number })
  | (ClientState & { readonly op: "state" })
  /** `error` null: it was ended without one. */
  | { readonly op: "over"; readonly client: number; readonly error: string | null }
  /** `key` null: there is none any more. */
  | {
      readonly op: "exported";
      readonly client: number;
      readonly number: number;
      readonly key: Uint8Array | null;
    }
  | { readonly op: "datagrams"; readonly client: number; readonly bytes: Uint8Array<ArrayBuffer> }
  | (StreamName & { readonly op: "stream"; readonly isBidi: boolean })
  | (StreamName & { readonly op: "data"; readonly bytes: Uint8Array<ArrayBuffer> })
  | (StreamName & { readonly op: "ended" })
  | (StreamName & { readonly op: "finished" })
  /** So many bytes more have found room. */
  | (StreamName & { readonly op: "wrote"; readonly bytes: number })
  /** Nothing more comes of it; `error` null: it was ended in order. */
  | (StreamName & { readonly op: "gone"; readonly error: string | null });
