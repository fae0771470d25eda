import { z } from "zod";
import { flag } from "#core/fields.ts";
import type { Inbound, InboundEnv } from "#core/inbound.ts";
import { inboundSide, type Protocol } from "#core/protocol.ts";
import type { Endpoint } from "#core/session.ts";
import { abortStream } from "#core/stream.ts";
import { arrivalOf, describe, guardErrors, streamSession } from "#net/accept.ts";
import { loopsBack } from "#net/own-address.ts";
import { serveCaptured } from "./datagrams.ts";

const schema = z.object({ udp: flag().default(true) });

/** TCP and UDP that an nftables or iptables `tproxy` rule gives to this port goes where it was going. */
export const tproxy: Protocol = { type: "tproxy", inbound: inboundSide(schema, open) };

/** Throws `ConfigError` where this system or this user cannot have transparent sockets. */
async function open({ udp }: z.output<typeof schema>, env: InboundEnv): Promise<Inbound> {
  const endpoints = [...(await listenTcp(env))];
  if (udp) endpoints.push(...(await env.listenTransparentUdp((socket) => serveCaptured(socket, env))));
  return { name: env.name, type: "tproxy", endpoints, async [Symbol.asyncDispose]() {} };
}

function listenTcp(env: InboundEnv): Promise<readonly Endpoint[]> {
  return env.listenTcp(
    (socket, listener) => {
      guardErrors(socket);
      const arrival = arrivalOf(socket);
      if (arrival === null) return abortStream(socket);
      const destination = { host: null, ...arrival.local }; // the kernel keeps the address that the client dialled
      if (loopsBack(destination, listener)) {
        env.log.debug(() => `${env.name}: a connection to the listener itself is reset`);
        return abortStream(socket);
      }
      const place = { source: arrival.source, local: listener };
      const metadata = describe(env, place, { network: "tcp", type: "TProxy", user: null, destination });
      env.accept(streamSession(metadata, socket, () => {})); // a failed dial shows as a close
    },
    { transparent: true },
  );
}
