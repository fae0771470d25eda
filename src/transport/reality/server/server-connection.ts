/** The accepting side of a REALITY connection, without I/O. */
import { Tls13Connection } from "#transport/tls13/connection.ts";
import { RealityHandshake, type ShapedFlight } from "./server-handshake.ts";

export class RealityConnection extends Tls13Connection<RealityHandshake> {
  /** `later`: lengths of the records that dest sends once a client has finished; asked for then. */
  constructor(flight: ShapedFlight, later: () => readonly number[]) {
    super((output) => new RealityHandshake(flight, later, output));
  }

  /** Its number. */
  get suite(): number {
    return this.handshake.suite.id;
  }

  /** A record without payload, as long as one of dest's that came before the client has finished. */
  imitate(recordBytes: number): void {
    this.handshake.imitate(recordBytes);
  }
}
