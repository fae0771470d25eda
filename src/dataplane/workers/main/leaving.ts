/** How the two ends of a connection leave the streams of the event loop, and come back. */
import type { Duplex } from "node:stream";
import { detachable, type Detachable } from "#core/handover.ts";
import type { Meter } from "#core/meter.ts";
import type { RelayEnd, RelayPair } from "#dataplane/backend.ts";
import { CLIENT, REMOTE, type Side } from "#dataplane/workers/shared/sides.ts";
import { KINDS, type HandedWire } from "#dataplane/workers/shared/wire-spec.ts";
import type { OffloadedFlow } from "./offloaded-flow.ts";

/** Bytes that were read already and perhaps must be held back are the pump's business. */
export function mustWait({ client, remote }: RelayPair, meter: Meter): boolean {
  return meter.free !== true && client.stream.readableLength + remote.stream.readableLength > 0;
}

/** The side that comes back as a socket, should the other one have to; null: neither does. */
export function bareSideOf({ client, remote }: RelayPair): Side | null {
  if (client.detachable.isSession === true) return REMOTE;
  return remote.detachable.isSession === true ? CLIENT : null;
}

/** It may have to, as two sockets. */
export function cannotReturn(pair: RelayPair): boolean {
  const side = bareSideOf(pair);
  if (side === null) return false;
  const { kind, isLayered } = (side === CLIENT ? pair.client : pair.remote).detachable;
  return kind !== "plain" || isLayered === true || pair.resume === undefined;
}

/** What was read already goes first. An end that was read shows again in the kernel's socket. */
export function deliver(from: RelayEnd, to: RelayEnd, counted: (bytes: number) => void): void {
  from.stream.pause();
  for (let chunk = read(from.stream); chunk !== null; chunk = read(from.stream)) {
    counted(chunk.length);
    to.stream.write(chunk);
  }
}

function read(from: Duplex): Buffer | null {
  return from.readableLength > 0 ? (from.read() as Buffer | null) : null;
}

export function canLeave({ stream }: RelayEnd): boolean {
  return stream.readableLength === 0 && stream.writableLength === 0 && detachable(stream) !== null;
}

/** A stream over the socket stays until the end, so that destroying it ends the connection. */
export function shellOf({ stream, detachable }: RelayEnd): Duplex | null {
  return stream === detachable.socket ? null : stream;
}

/** From the next turn of the event loop on nothing of the runtime reads the socket. */
export function depart({ detachable }: RelayEnd, fd: number): HandedWire {
  const state = detachable.detach();
  if (typeof detachable.socket !== "number") detachable.socket.destroy();
  return { kind: KINDS[detachable.kind], fd, ...state };
}

export function giveBack(
  flow: OffloadedFlow,
  side: Side,
  takeBack: NonNullable<Detachable["reattach"]>,
): void {
  const fd = flow.takeOpenDescriptor(side);
  const remainder = flow.takeRemainder(side);
  takeBack(fd, fd < 0 ? null : remainder);
}
