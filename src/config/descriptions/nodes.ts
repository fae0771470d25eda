/** Keys of nodes that several protocols share. */
import type { Descriptions } from "#core/key-descriptions.ts";

const NOT_SPOKEN =
  "A disguise that is not spoken: a node or listener with it is left inert, and a warning says so.";
const RATE = "as `100 mbps`, `1 gbps`, `10 MBps` (bytes), or a number of Mbit/s";

export const nodes: Descriptions = {
  proxies: "Nodes: servers through which connections can leave.",
  "proxies.name": ["Name of the node, for rules and groups.", "hk-1"],
  "proxies.type":
    "Protocol of the node. Types that are known and not spoken stay in their groups and cannot be dialled.",
  "proxies.udp": "Whether it carries UDP.",
  udp: "Whether UDP is carried.",
  "proxies.ip-version": [
    "Which addresses of its server are dialled: `dual`, `ipv4`, `ipv6`, `ipv4-prefer`, `ipv6-prefer`.",
    "ipv4-prefer",
  ],
  "override.ip-version": ["As the key of a node.", "ipv4-prefer"],
  "dialer-proxy": ["Proxy or group through which the server is dialled.", "Chain"],
  tfo: "TCP Fast Open. Named by a warning, without effect.",
  mptcp: "Multipath TCP. Named by a warning, without effect.",
  "shadow-tls": NOT_SPOKEN,
  "shadow-tls-opts": NOT_SPOKEN,
  restls: NOT_SPOKEN,
  "restls-opts": NOT_SPOKEN,
  "res-tls": NOT_SPOKEN,
  server: ["Name or address of the server.", "server.example.com"],
  "proxies.port": ["Port of the server.", 443],
  username: ["Name of the account.", "alice"],
  password: ["Password that both ends share.", "letmein"],
  uuid: ["Id of the user, as both ends write it.", "b831381d-6324-4d53-ad4f-8cda48b30811"],
  headers: ["Further headers of the request.", { "X-Team": "blue" }],
  cipher: ["Cipher that both ends use.", "aes-128-gcm"],
  up: [`What the line carries towards the server, ${RATE}.`, "50 mbps"],
  down: [`What the line carries from the server, ${RATE}.`, "200 mbps"],
  "udp-over-tcp": "Whether UDP goes inside the TCP connection.",
  "udp-over-tcp-version": ["Version of that way: 1 or 2.", 2],
  network: [
    "What carries the protocol: TCP, WebSocket (`ws`), gRPC, HTTP/2 (`h2`), HTTP/1.1 (`http`), XHTTP.",
    "ws",
  ],
  "packet-encoding": ["How datagrams carry their addresses: `xudp`, `packetaddr`, or `none`.", "xudp"],
  encryption:
    "Encryption of the protocol's own, below its header: the text that the key generator printed for the node. `none` and empty: no such layer.",
  "disable-reuse": "Whether every connection gets one of its own to the server.",
  "bbr-profile": ["How boldly the rate is looked for: `conservative`, `standard`, `aggressive`.", "standard"],
  "congestion-controller": ["How the rate is found: `cubic`, `new_reno`, `bbr`.", "bbr"],
  cwnd: ["Packets that may be under way at the start.", 32],
  "obfs-password": ["Password of the obfuscation, at least 4 bytes.", "cry_me_a_river"],
  token: "Credential of an older version of the protocol, which is not spoken.",
  "realm-opts": "Finding a server by a meeting point, which is not spoken: the item is left inert.",
  "initial-stream-receive-window": [
    "Bytes that the peer may send ahead on one stream at the start.",
    8388608,
  ],
  "max-stream-receive-window": ["Bytes that the peer may send ahead on one stream.", 8388608],
  "initial-connection-receive-window": ["Bytes that the peer may send ahead in all at the start.", 20971520],
  "max-connection-receive-window": ["Bytes that the peer may send ahead in all.", 20971520],
  "max-udp-relay-packet-size": ["Longest datagram that goes in one piece, in bytes.", 1252],
  "udp-mtu": [
    "Longest frame of a datagram, in bytes; longer ones, and what the other side or the path does not take, are sent in parts.",
    1197,
  ],
  smux: "Many streams in one connection to the server.",
  "smux.enabled": "Whether streams share connections.",
  "smux.protocol": ["How: `h2mux`, `smux`, `yamux`, or `mux.cool`.", "h2mux"],
  "smux.max-connections": ["Connections to the server at most; 0: no bound.", 4],
  "smux.min-streams": ["Streams in every connection before another one is opened.", 4],
  "smux.max-streams": ["Streams in one connection at most; excludes the two keys before.", 16],
  padding: "Whether the beginning of a connection is padded.",
  statistic: "Read for compatibility: streams are always counted one by one.",
  "only-tcp": "Whether datagrams go beside it.",
  "brutal-opts": "A fixed rate by a kernel module; refused when it is switched on.",
  brutal: "A fixed rate by a kernel module; refused when it is switched on.",
  "brutal.enabled": "Refused when it is on.",
  "brutal-opts.enabled": "Refused when it is on.",
};
