import type { Datagram } from "./session.ts";

/** A copy for whoever keeps a datagram that was lent. */
export function keptDatagram({ payload, destination }: Datagram): Datagram {
  return { payload: Buffer.from(payload), destination };
}
