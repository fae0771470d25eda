import * as z from "zod";
import { flag } from "#core/fields.ts";
import type { Inbound, InboundEnv } from "#core/inbound.ts";
import { inboundSide, type Protocol } from "#core/protocol.ts";
import type { Endpoint, Metadata } from "#core/session.ts";
import { type ConnectionEnds, describe } from "#net/listen/accept.ts";
import { loopsBack } from "#net/address/own-address.ts";
import { listenSilently } from "#net/listen/silent-sources.ts";
import { serveCaptured } from "./datagrams.ts";

const schema = z.object({ udp: flag().default(true) });

/** TCP and UDP that an nftables or iptables `tproxy` rule gives to this port goes where it was going. */
export const tproxy: Protocol = { type: "tproxy", inbound: inboundSide(schema, open) };

/** Throws `ConfigError` where this system or this user cannot have transparent sockets. */
async function open({ udp }: z.output<typeof schema>, env: InboundEnv): Promise<Inbound> {
  const endpoints = [
    ...(await listenSilently(env, {
      handshake: { handshake: "transparent" },
      transparent: true,
      describe: (client, listener) => describeClient(client, listener, env),
    })),
  ];
  if (udp) endpoints.push(...(await env.listenTransparentUdp((socket) => serveCaptured(socket, env))));
  return { name: env.name, type: "tproxy", endpoints, async [Symbol.asyncDispose]() {} };
}

function describeClient(
  { source, local }: ConnectionEnds,
  listener: Endpoint,
  env: InboundEnv,
): Metadata | null {
  const destination = { host: null, ...local }; // the kernel keeps the address that the client dialled
  if (loopsBack(destination, listener)) {
    env.log.debug(() => `${env.name}: a connection to the listener itself is reset`);
    return null;
  }
  const context = { source, local: listener };
  return describe(env, context, { network: "tcp", type: "TProxy", user: null, destination });
}
