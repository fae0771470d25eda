/** The same contract over sockets that were made by descriptor; the runner gives this file a process of its own. */
import { test } from "node:test";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { directOutbound } from "#protocols/direct/index.ts";
import { literalsOnly } from "../support/resolvers.ts";
import { outboundContract } from "./outbound.ts";

if (process.platform === "linux" && process.getuid?.() === 0) {
  outboundContract(
    "direct with a mark, bound to lo",
    async () => {
      const dialer = openDirectDialer({ resolver: literalsOnly, routingMark: 0x77, interfaceName: "lo" });
      const outbound = directOutbound("DIRECT", dialer);
      return { outbound, [Symbol.asyncDispose]: () => outbound[Symbol.asyncDispose]() };
    },
    { udp: true },
  );
} else test("direct with a mark", { skip: "SKIP direct with a mark: SO_MARK needs Linux and root" });
