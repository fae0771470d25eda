import * as z from "zod";
import { inboundSide } from "#core/protocol.ts";
import { listenFields, openHandshakes } from "#protocols/mixed/listen.ts";
import { PlainProxy } from "./plain.ts";
import { serveHttp } from "./serve.ts";

export const httpInbound = inboundSide(z.object(listenFields), async (options, env) => {
  const plain = new PlainProxy(env);
  return openHandshakes("http", options, env, (client, reader) => serveHttp(client, reader, plain, env), [
    plain,
  ]);
});
