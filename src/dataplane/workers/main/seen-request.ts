import type { WorkerConnection } from "#core/accepted.ts";
import type { OffloadOptions } from "#net/listen/accept-offload.ts";
import { requestSlotOf, switchedOf } from "#dataplane/workers/shared/slot-tag.ts";
import type { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import { int32At } from "#lib/at.ts";
import type { DecidedEnds } from "./decided-rows.ts";
import type { WorkerHandle } from "./worker-handle.ts";

const NO_BYTES = Buffer.alloc(0);

/** What a thread has seen of its client. */
export interface SeenRequest extends Pick<WorkerConnection, "source" | "local" | "original" | "switched"> {
  readonly request: Buffer;
  readonly handshakeBytes: number;
  /** What lies over the socket, behind a handshake that the thread has done. */
  readonly over: "tls" | "records" | null;
}

/** As the request slot of a slot has it. */
export function readRequest(
  { accepts }: WorkerHandle,
  slot: number,
  { handshake }: OffloadOptions,
  sockaddrs: Sockaddrs,
): SeenRequest {
  const word = int32At(accepts.tags, slot);
  const index = requestSlotOf(word);
  const { requests } = accepts;
  const handshakeBytes = int32At(requests.sizes, index);
  return {
    source: sockaddrs.source(accepts.source(slot)),
    local: sockaddrs.local(requests.local(index)),
    original: handshake === "redirected" ? sockaddrs.original(requests.original(index)) : null,
    request: handshakeBytes === 0 ? NO_BYTES : requests.request(index),
    handshakeBytes,
    over: handshake === "tls" ? "tls" : handshake === "reality" ? "records" : null,
    switched: switchedOf(word),
  };
}

/** The same of a stream in a session, whose request was read already. */
export function streamRequest({ source, local }: DecidedEnds, request: Buffer): SeenRequest {
  const handshakeBytes = request.length;
  return { source, local, original: null, request, handshakeBytes, over: null, switched: null };
}

/** Of a client that its worker has decided, and asked nothing about. */
export function noRequest({ source, local }: DecidedEnds): SeenRequest {
  return {
    source,
    local,
    original: null,
    request: NO_BYTES,
    handshakeBytes: 0,
    over: null,
    switched: null,
  };
}
