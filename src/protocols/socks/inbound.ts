import * as z from "zod";
import { ProtocolError } from "#core/errors.ts";
import { flag } from "#core/fields.ts";
import { inboundSide } from "#core/protocol.ts";
import { DatagramSockets } from "#net/udp/datagram-socket.ts";
import { listenFields, openHandshakes } from "#protocols/mixed/listen.ts";
import { firstByteOf } from "#protocols/mixed/peek.ts";
import { serveSocks } from "./serve.ts";

const schema = z.object({ ...listenFields, udp: flag().default(true) });

export const socksInbound = inboundSide(schema, (options, env) => {
  const socks = { udp: options.udp, datagrams: new DatagramSockets() };
  return openHandshakes("socks", options, env, async (client, reader) => {
    const byte = await firstByteOf(reader);
    if (byte !== 4 && byte !== 5) throw new ProtocolError(`SOCKS version ${byte}, expected 4 or 5`);
    await serveSocks(client, reader, byte, socks, env);
  });
});
