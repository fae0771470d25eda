import type { Socket } from "node:dgram";

/** The runtime keeps it behind a symbol. -1 where it has moved: then nothing can be asked of the socket. */
export function datagramDescriptorOf(socket: Socket): number {
  const state = Object.getOwnPropertySymbols(socket).find(
    ({ description }) => description === "state symbol",
  );
  if (state === undefined) return -1;
  return (socket as unknown as Record<symbol, { handle: { fd: number } }>)[state]?.handle.fd ?? -1;
}
