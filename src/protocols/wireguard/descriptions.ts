/** What the keys mean that only this protocol has, or that mean something else here. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const descriptions: Descriptions = {
  "private-key": [
    "The key of this end, as `wg genkey` writes it.",
    "eCtXsJZ27+4PbhDkHnB923tkUn2Gj59wZw5wFA75MnU=",
  ],
  "public-key": ["The key of the server.", "Cr8hWlKvtDt7nrvf+f0brNQQzabAqrjfBvas9pmowjo="],
  "pre-shared-key": "A second secret that both ends have.",
  ip: ["The address of this end in the tunnel.", "172.16.0.2"],
  ipv6: ["Its IPv6 address.", "fd01:5ca1:ab1e::2"],
  "allowed-ips": ["Networks that the server carries.", ["0.0.0.0/0"]],
  reserved: ["Three bytes that some servers want in every message.", [209, 98, 59]],
  "peers.server": ["Name or address of one server.", "192.0.2.1"],
  "peers.port": ["Its UDP port.", 51820],
  peers: "Several servers; `allowed-ips` tells which one carries what.",
  mtu: ["Longest packet in the tunnel, in bytes; 0 is 1408.", 1408],
  "persistent-keepalive": ["Seconds between two signs of life to the server; 0: none without need.", 25],
  "remote-dns-resolve": "Whether names of destinations are looked up at `dns`, through the tunnel.",
  dns: ["Servers of `remote-dns-resolve`.", ["1.1.1.1"]],
  "amnezia-wg-option": "The disguise of AmneziaWG, which is not in this build.",
  workers: "Means nothing here.",
  "refresh-server-ip-interval":
    "Means nothing here: a server's name is looked up anew when it does not answer.",
};
