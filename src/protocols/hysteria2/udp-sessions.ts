import { OpenedFlows } from "#protocols/shared/opened-flows.ts";
import { type FrameWay, UdpChannel } from "./udp-channel.ts";
import { decodeUdp, type UdpMessage } from "./wire.ts";

export interface SessionsWay extends FrameWay {
  /** A flow has ended. */
  ended(): void;
}

/** Datagrams of a node through its hysteria2 connection: a session for each client's flow. */
export function newUdpSessions(way: SessionsWay): OpenedFlows<UdpMessage> {
  return new OpenedFlows({
    protocol: "hysteria2",
    firstId: 1,
    idCount: 2 ** 32,
    decode: decodeUdp,
    idOf: ({ session }) => session,
    openChannel: (id) => new UdpChannel(id, way),
    ended: () => way.ended(),
  });
}
