/** Hands a connection over to a worker: its sockets and what lies over them are the worker's, until its end is reported. */
import { descriptorOf } from "#core/handover.ts";
import type { Direction, Meter } from "#core/meter.ts";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";
import type { RelayBackendOptions, RelayEnd, RelayPair } from "#dataplane/backend.ts";
import { CLIENT, type Side } from "#dataplane/workers/shared/sides.ts";
import { bareSideOf, canLeave, deliver, depart, giveBack, shellOf } from "./leaving.ts";
import { OffloadedFlow } from "./offloaded-flow.ts";
import { socketOf } from "./socket-of.ts";
import type { WorkerHandle } from "./worker-handle.ts";

/** As `RelayBackend.relay` says, by a thread that has room. */
export function handOver(
  pair: RelayPair,
  thread: WorkerHandle,
  meter: Meter,
  options: RelayBackendOptions,
  calls: RelayCalls,
): Promise<void> | null {
  const { client, remote } = pair;
  const near = ownDescriptor(client, calls);
  const isMissing = near < 0 && client.detachable.kind !== "quic";
  const far = isMissing ? -1 : ownDescriptor(remote, calls);
  if (far < 0) return giveUp(client, near, calls);
  deliver(client, remote, (bytes) => count(meter, options, "upload", bytes));
  deliver(remote, client, (bytes) => count(meter, options, "download", bytes));
  // Bytes that the kernel did not take at once stay with the streams, and so does the connection.
  if (!canLeave(client) || !canLeave(remote)) {
    giveUp(remote, far, calls);
    return giveUp(client, near, calls);
  }
  return start(pair, thread, [near, far], meter, options, calls);
}

function start(
  pair: RelayPair,
  thread: WorkerHandle,
  [near, far]: readonly [number, number],
  meter: Meter,
  options: RelayBackendOptions,
  calls: RelayCalls,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { client, remote } = pair;
  const { onBytes, onSilent, signal } = options;
  // The closure below lives as long as the connection, of which there are thousands: it keeps only this.
  const bareSide = bareSideOf(pair);
  const resume = bareSide === null ? undefined : pair.resume;
  const backs = [client.detachable.reattach, remote.detachable.reattach];
  const left = [shellOf(client), shellOf(remote)];
  const onGone = (): void => flow.reset();
  const onEnded = (): void => {
    signal.removeEventListener("abort", onGone);
    for (const stream of left) stream?.off("close", onGone);
    const socket = bareSide === null ? null : socketOf(flow.takeOpenDescriptor(bareSide), calls);
    if (socket === null) for (const stream of left) stream?.destroy();
    for (const [side, takeBack] of backs.entries())
      if (takeBack !== undefined) giveBack(flow, side as Side, takeBack);
    if (socket === null) resolve();
    else resume?.(bareSide === CLIENT ? { client: socket } : { remote: socket });
  };
  const flow = new OffloadedFlow(thread, meter, options, { onBytes, onSilent, onEnded });
  for (const stream of left) stream?.once("close", onGone);
  flow.start(depart(client, near), depart(remote, far));
  signal.addEventListener("abort", onGone);
  return promise;
}

/** For the thread; -1 where none is left. */
function ownDescriptor({ detachable: { socket } }: RelayEnd, calls: RelayCalls): number {
  return typeof socket === "number" ? socket : calls.duplicate(descriptorOf(socket));
}

function giveUp({ detachable: { socket } }: RelayEnd, fd: number, calls: RelayCalls): null {
  if (fd >= 0 && typeof socket !== "number") calls.close(fd);
  return null;
}

function count(meter: Meter, { onBytes }: RelayBackendOptions, direction: Direction, bytes: number): void {
  onBytes(direction, bytes);
  meter.adjust(direction, bytes);
}
