import type { Datagram } from "./session.ts";

/** A copy of a datagram that was lent, for keeping. */
export function keptDatagram({ payload, destination }: Datagram): Datagram {
  return { payload: Buffer.from(payload), destination };
}
