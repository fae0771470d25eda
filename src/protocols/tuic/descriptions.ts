/** What the keys mean that only this protocol has, or that mean something else here. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const descriptions: Descriptions = {
  "listeners.users": [
    "Ids and passwords of the users.",
    { "b831381d-6324-4d53-ad4f-8cda48b30811": "letmein" },
  ],
  ip: [
    "Address to dial in place of `server`, which stays the name that the certificate is for.",
    "192.0.2.1",
  ],
  "udp-relay-mode": [
    "How datagrams go: `native` as datagrams of QUIC, `quic` by a stream for each, which loses none.",
    "native",
  ],
  "reduce-rtt": "Whether first bytes go inside the handshake, where the server has been met before.",
  "fast-open": "Whether first bytes follow the request without waiting; always on.",
  "heartbeat-interval": ["Milliseconds between two signs of life while something is open.", 10000],
  "request-timeout": ["Milliseconds for the connection to the server.", 8000],
  "max-open-streams": ["Streams in one connection, beyond which another one is opened.", 100],
  "max-datagram-frame-size": ["Longest datagram of QUIC that is taken, in bytes.", 65535],
  "recv-window": ["Bytes that the server may send ahead on one stream.", 8388608],
  "recv-window-conn": ["Bytes that the server may send ahead in all.", 20971520],
  "disable-mtu-discovery": "Whether packets stay at 1,200 bytes.",
  "udp-over-stream": "Whether datagrams go inside one stream.",
  "udp-over-stream-version": ["Version of that way.", 1],
};
