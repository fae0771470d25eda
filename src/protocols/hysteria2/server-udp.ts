/** Datagrams of a client through its hysteria2 connection: a session for each number that it uses. */
import { ProtocolError } from "#core/errors.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { AcceptedFlows } from "#protocols/shared/accepted-flows.ts";
import { type FrameWay, UdpChannel } from "./udp-channel.ts";
import { decodeUdp, type UdpMessage } from "./wire.ts";

export class ServerUdp {
  readonly #flows: AcceptedFlows<UdpMessage>;

  /** `onFlow` takes a new flow over, and disposes of it when it is idle. */
  constructor(way: FrameWay, onFlow: (flow: DatagramFlow, first: Destination) => void) {
    this.#flows = new AcceptedFlows({ openChannel: (id) => new UdpChannel(id, way), onFlow });
  }

  /** A frame of the client's; one that cannot be read is dropped, as on any network. */
  take(payload: Uint8Array): void {
    try {
      const message = decodeUdp(payload);
      this.#flows.take(message.session, message);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
  }

  /** The connection is over. */
  close(): void {
    this.#flows.close();
  }
}
