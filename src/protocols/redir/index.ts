import { z } from "zod";
import type { Inbound, InboundEnv } from "#core/inbound.ts";
import { inboundSide, type Protocol } from "#core/protocol.ts";
import type { Destination } from "#core/session.ts";
import { abortStream } from "#core/stream.ts";
import { arrivalOf, describe, descriptorOf, guardErrors, streamSession } from "#net/accept.ts";
import { familyOf, ipFromBytes } from "#net/ip.ts";
import { loopsBack } from "#net/own-address.ts";
import { openOriginalDestinations } from "#platform/transparent.ts";

/** TCP that an nftables or iptables `redirect` rule sends here goes where it was going. */
export const redir: Protocol = { type: "redir", inbound: inboundSide(z.object({}), open) };

/** Throws `ConfigError` where this system does not tell where a connection was going. */
async function open(_: object, env: InboundEnv): Promise<Inbound> {
  const originalOf = openOriginalDestinations();
  const endpoints = await env.listenTcp((socket, listener) => {
    guardErrors(socket);
    const arrival = arrivalOf(socket);
    const original = arrival === null ? null : originalOf(descriptorOf(socket), familyOf(arrival.source.ip));
    if (arrival === null || original === null) {
      env.log.debug(() => `${env.name}: a connection that was not redirected is reset`);
      return abortStream(socket);
    }
    const destination: Destination = {
      host: null,
      ip: ipFromBytes(original.address),
      port: original.port,
    };
    if (loopsBack(destination, listener)) {
      env.log.debug(() => `${env.name}: a connection to the listener itself is reset`);
      return abortStream(socket);
    }
    const metadata = describe(env, arrival, { network: "tcp", type: "Redir", user: null, destination });
    env.accept(streamSession(metadata, socket, () => {})); // a failed dial shows as a close
  });
  return { name: env.name, type: "redir", endpoints, async [Symbol.asyncDispose]() {} };
}
