import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { directOutbound } from "#protocols/direct/index.ts";
import { outboundContract } from "./outbound.ts";
import { literalsOnly } from "../support/resolvers.ts";

outboundContract(
  "direct",
  async () => {
    const outbound = directOutbound("DIRECT", openDirectDialer({ resolver: literalsOnly }));
    return { outbound, [Symbol.asyncDispose]: () => outbound[Symbol.asyncDispose]() };
  },
  { udp: true },
);
