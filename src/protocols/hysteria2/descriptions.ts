/** What the keys mean that only this protocol has, or that mean something else here. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const descriptions: Descriptions = {
  "listeners.users": [
    "Names and passwords of the users; no two passwords are the same.",
    { alice: "letmein" },
  ],
  "ignore-client-bandwidth":
    "Whether what clients say of their line is not believed, and the rate is found by congestion control.",
  obfs: ["Makes packets look like noise: `salamander` or `gecko`; empty: not at all.", "salamander"],
  "obfs-min-packet-size": ["Bytes of the shortest part that `gecko` cuts a packet into; 0 is 512.", 512],
  "obfs-max-packet-size": ["Bytes of the longest such part, at most 2048; 0 is 1200.", 1200],
  masquerade: [
    "The web site for everybody without a password: an address to pass on to, `file://` and a folder, or text.",
    "https://www.example.com",
  ],
  ports: ["Ports of the server, another one of which is used every `hop-interval`.", "20000-50000"],
  "hop-interval": ["Seconds on one port, at least 5; `20-40` is a random time within.", "30"],
  "handshake-timeout": ["Seconds for handshake and authentication; 0 is 10.", 10],
};
