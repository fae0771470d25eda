import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import type { InboundEnv } from "#core/inbound.ts";
import type { Destination, Endpoint, Metadata, Network, StreamSession } from "#core/session.ts";
import type { StreamSocket } from "#core/sockets.ts";
import { socketIp } from "#net/address/ip.ts";

/** Both ends of an accepted connection, as the kernel names them. */
export interface ConnectionEnds {
  readonly source: Endpoint;
  readonly local: Endpoint;
}

/** Null when the connection is gone already and the kernel no longer knows its ends. */
export function connectionEnds(socket: StreamSocket): ConnectionEnds | null {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  if (remoteAddress === undefined || remotePort === undefined || localPort === undefined) return null;
  return {
    source: { ip: socketIp(remoteAddress), port: remotePort },
    local: { ip: socketIp(localAddress), port: localPort },
  };
}

/** What an inbound learnt from its client. */
export interface ClientRequest {
  readonly network: Network;
  /** API spelling of what the client spoke. */
  readonly type: string;
  readonly user: string | null;
  readonly destination: Destination;
}

/** The listener as far as it goes into metadata. */
export type ListenerContext = Pick<InboundEnv, "name" | "ruleList" | "target">;

/** `isRemote`: as `InboundInfo` has it. */
export function describe(
  { name, ruleList, target }: ListenerContext,
  ends: ConnectionEnds,
  asked: ClientRequest,
  isRemote?: true,
): Metadata {
  const { network, type, user, destination } = asked;
  const inbound = { name, type, user, local: ends.local, ruleList, target };
  return {
    id: randomUUID(),
    network,
    source: ends.source,
    destination,
    inbound: isRemote === undefined ? inbound : { ...inbound, isRemote },
    dscp: null,
    acceptedAtMs: Date.now(),
  };
}

/** A session whose `tell` runs for the first reply only and cannot throw into the relay. */
export function streamSession(
  metadata: Metadata,
  stream: Duplex,
  reply: (failure: Error | null) => void,
): StreamSession {
  let told = false;
  return {
    network: "tcp",
    metadata,
    stream,
    reply(failure) {
      if (told || stream.destroyed) return;
      told = true;
      try {
        reply(failure);
      } catch (error) {
        stream.destroy(error instanceof Error ? error : new Error(String(error)));
      }
    },
  };
}

/**
 * The first thing to call on an accepted connection: an 'error' event without a listener would end the process, and a
 * reset may come before other listeners are attached. The stream destroys itself; its users see 'close'.
 */
export function guardErrors(stream: Duplex): void {
  stream.on("error", ignore);
}

const FINAL_REPLY_MS = 2000;

/**
 * Ends a connection with last words. Reads on until the peer has closed, for two seconds at most: a close over unread
 * bytes is a reset, which can take the words back.
 */
export function endWithReply(stream: Duplex, replyBytes: string | Uint8Array): void {
  if (stream.destroyed) return;
  const timer = setTimeout(() => stream.destroy(), FINAL_REPLY_MS);
  stream.on("close", () => clearTimeout(timer));
  stream.end(replyBytes);
  stream.resume();
}

function ignore(): void {}
