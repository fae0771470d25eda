import * as z from "zod";
import { flag } from "#core/fields.ts";
import { inboundSide, type Protocol } from "#core/protocol.ts";
import { PlainProxy } from "#protocols/http/plain.ts";
import { serveHttp } from "#protocols/http/serve.ts";
import { accountNodes } from "#protocols/shared/links/account.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { serveSocks } from "#protocols/socks/serve.ts";
import { listenFields, openHandshakes, type Serve } from "./listen.ts";
import { firstByteOf } from "./peek.ts";

const schema = z.object({ ...listenFields, udp: flag().default(true) });

/** One port for both: a first byte 4 or 5 is SOCKS, anything else HTTP. */
export const mixed: Protocol = {
  type: "mixed",
  inbound: inboundSide(schema, async (options, env) => {
    const plain = new PlainProxy(env);
    const socks = { udp: options.udp, datagrams: new DatagramSockets() };
    const serve: Serve = async (client, reader) => {
      const byte = await firstByteOf(reader);
      if (byte === 4 || byte === 5) await serveSocks(client, reader, byte, socks, env);
      else await serveHttp(client, reader, plain, env);
    };
    return openHandshakes("mixed", options, env, serve, [plain]);
  }),
  inboundTypes: [], // its sessions are those of the two protocols
  listenerNodes: (options, listener) =>
    ["socks5", "http"].flatMap((type) => accountNodes(type, options, listener)),
};
