import * as z from "zod";
import type { Duplex } from "node:stream";
import { asDialError, ConfigError, DialError } from "#core/errors.ts";
import { flag, secret, text } from "#core/fields.ts";
import { serverFields } from "#core/node-fields.ts";
import type { DialContext, Dialer, Outbound, OutboundEnv } from "#core/outbound.ts";
import { BOTH_NETWORKS, TCP_ONLY } from "#core/outbound.ts";
import { outboundSide } from "#core/protocol.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { ANY_V4, ANY_V6, toDestination } from "#net/address/ip.ts";
import { tlsClientFields } from "#transport/tls/fields.ts";
import { openProxyLink, type ProxyLink } from "#protocols/mixed/proxy-link.ts";
import { relayedFlow } from "./relayed-flow.ts";
import { errorOf } from "./replies.ts";
import * as wire from "./wire.ts";

const schema = z.object({
  ...serverFields,
  username: text().default(""),
  password: secret().default(""),
  udp: flag().default(false),
  tls: flag().default(false),
  sni: text().optional(),
  ...tlsClientFields,
});
type Options = z.output<typeof schema>;

export const socks5Outbound = outboundSide("Socks5", schema, open);

async function open(options: Options, env: OutboundEnv): Promise<Outbound> {
  const { username, password, udp } = options;
  const credentials = username === "" && password === "" ? null : { username, password };
  if (Math.max(Buffer.byteLength(username), Buffer.byteLength(password)) > 255)
    throw new ConfigError(`proxy ${env.name}: SOCKS5 allows username and password of at most 255 bytes each`);
  const link = await openProxyLink(options, env);
  return {
    name: env.name,
    type: "Socks5",
    networks: udp ? BOTH_NETWORKS : TCP_ONLY,
    sendsDatagrams: true,
    connect: async (destination, context) =>
      (await request(link, credentials, wire.CONNECT, destination, context)).stream,
    associate: udp
      ? (_first, context) => associate(link, env.dialer, credentials, context)
      : async () => {
          throw new DialError("unsupported", `${env.name}: udp is not enabled for this proxy`);
        },
    async [Symbol.asyncDispose]() {},
  };
}

interface Opened {
  readonly stream: Duplex;
  readonly bound: Destination;
}

async function request(
  link: ProxyLink,
  credentials: wire.Credentials | null,
  command: number,
  destination: Destination,
  context: DialContext,
): Promise<Opened> {
  return link.open(context, async (stream, signal) => {
    using reader = new ByteReader(stream, { signal });
    const method = credentials === null ? wire.NO_AUTHENTICATION : wire.USER_PASSWORD;
    stream.write(wire.encodeGreeting(method));
    if ((await reader.take(wire.decodeChoice)) !== method)
      throw new DialError("failed", `${link.where}: the proxy accepts no authentication that we have`);
    if (credentials !== null) {
      stream.write(wire.encodeCredentials(credentials));
      if (!(await reader.take(wire.decodeVerdict)))
        throw new DialError("failed", `${link.where}: the proxy refused user name and password`);
    }
    stream.write(wire.encodeRequest(command, destination));
    const { code, bound } = await reader.take(wire.decodeReply);
    if (code !== 0) throw errorOf(code, link.where);
    return { stream, bound };
  });
}

/** The request names 0.0.0.0:0, because the source address of the datagrams is not known yet (RFC 1928 §6). */
async function associate(
  link: ProxyLink,
  dialer: Dialer,
  credentials: wire.Credentials | null,
  context: DialContext,
): Promise<DatagramFlow> {
  const { stream, bound } = await request(link, credentials, wire.UDP_ASSOCIATE, wire.NOWHERE, context);
  const unspecified = bound.ip === ANY_V4 || bound.ip === ANY_V6;
  const relay = unspecified ? toDestination(link.server, bound.port) : bound;
  try {
    return relayedFlow(stream, await dialer.associate(relay, context), relay);
  } catch (error) {
    stream.destroy();
    throw asDialError(error, `${link.where}: UDP relay`);
  }
}
