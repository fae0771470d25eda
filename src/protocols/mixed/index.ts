import { z } from "zod";
import { flag } from "#core/fields.ts";
import { inboundSide, type Protocol } from "#core/protocol.ts";
import { PlainProxy } from "#protocols/http/plain.ts";
import { serveHttp } from "#protocols/http/serve.ts";
import { serveSocks } from "#protocols/socks/serve.ts";
import { frontFields, openFront } from "./front.ts";
import { firstByteOf } from "./peek.ts";

const schema = z.object({ ...frontFields, udp: flag().default(true) });

/** One port for both: a first byte 4 or 5 is SOCKS, anything else HTTP. */
export const mixed: Protocol = {
  type: "mixed",
  inbound: inboundSide(schema, async (options, env) => {
    const plain = new PlainProxy(env);
    const serve = async (client: Parameters<typeof serveHttp>[0]): Promise<void> => {
      const byte = await firstByteOf(client.stream);
      if (byte === 4 || byte === 5) await serveSocks(client, byte, options, env);
      else await serveHttp(client, plain, env);
    };
    return openFront("mixed", options, env, serve, [plain]);
  }),
};
