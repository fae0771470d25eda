import * as z from "zod";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { Inbound, InboundEnv } from "#core/inbound.ts";
import { inboundSide, type Protocol } from "#core/protocol.ts";
import type { Endpoint, Ip, Metadata } from "#core/session.ts";
import { describe } from "#net/listen/accept.ts";
import { familyOf, ipFromBytes } from "#net/address/ip.ts";
import { loopsBack } from "#net/address/own-address.ts";
import { listenSilently } from "#net/listen/silent-sources.ts";
import { openOriginalDestinations } from "#platform/transparent.ts";

/** TCP that an nftables or iptables `redirect` rule sends here goes where it was going. */
export const redir: Protocol = { type: "redir", inbound: inboundSide(z.object({}), open) };

/** Throws `ConfigError` where this system does not know the original destination of a connection. */
async function open(_: object, env: InboundEnv): Promise<Inbound> {
  const ask = openOriginalDestinations();
  const originalOf = (descriptor: number, client: Ip): Endpoint | null => {
    const raw = ask(descriptor, familyOf(client));
    return raw === null ? null : { ip: ipFromBytes(raw.address), port: raw.port };
  };
  const endpoints = await listenSilently(env, {
    handshake: { handshake: "redirected", originalOf },
    describe: (client, listener) => describeClient(client, listener, env),
  });
  return { name: env.name, type: "redir", endpoints, async [Symbol.asyncDispose]() {} };
}

function describeClient(client: AcceptedConnection, listener: Endpoint, env: InboundEnv): Metadata | null {
  const { original } = client;
  if (original === null) {
    env.log.debug(() => `${env.name}: a connection that was not redirected is reset`);
    return null;
  }
  const destination = { host: null, ...original };
  if (loopsBack(destination, listener)) {
    env.log.debug(() => `${env.name}: a connection to the listener itself is reset`);
    return null;
  }
  return describe(env, client, { network: "tcp", type: "Redir", user: null, destination });
}
