/** DNS over HTTPS (RFC 8484) on a path of the user's choice, open to every client that reaches the server. */
import type { FastifyReply } from "fastify";
import * as z from "zod";
import { ProtocolError } from "#core/errors.ts";
import type { DnsControl } from "#core/control.ts";
import { route, type Call, type Route } from "./route.ts";
import { queryOf } from "./shapes.ts";

const MEDIA_TYPE = "application/dns-message";
const MAX_MESSAGE_BYTES = 65_535;

export function dohRoutes(path: string | null, dns: DnsControl): readonly Route[] {
  if (path === null || !path.startsWith("/") || path.includes("*")) return [];
  const common = {
    path: path.replaceAll(":", "::"), // the router would take a colon for a parameter
    scope: "open",
    answer: { status: 200, type: MEDIA_TYPE, description: "The answer" },
    faults: { 500: "No DNS message, no resolver, or no answer" },
  } as const;
  return [
    route({
      ...common,
      method: "GET",
      summary: "DNS query in the `dns` parameter, base64url without padding",
      query: queryOf({ dns: z.string().optional() }),
      handle: (call) => exchange(dns, call, decodeQuery(call.query.dns)),
    }),
    route({
      ...common,
      method: "POST",
      maxBodyBytes: MAX_MESSAGE_BYTES,
      tooLarge: "a DNS message has at most 65535 bytes",
      summary: "DNS query in the body",
      rawBody: { type: MEDIA_TYPE },
      handle: (call) => exchange(dns, call, call.mediaType === MEDIA_TYPE ? call.bytes : null),
    }),
  ];
}

function decodeQuery(dns: string | undefined): Uint8Array | null {
  return dns !== undefined && /^[A-Za-z0-9_-]+$/.test(dns) ? Buffer.from(dns, "base64url") : null;
}

async function exchange(dns: DnsControl, call: Call, message: Uint8Array | null): Promise<FastifyReply> {
  const { reply } = call;
  if (!dns.enabled) return refuse(reply, "DNS section is disabled");
  if (message === null) return refuse(reply, `expected a DNS message (${MEDIA_TYPE})`);
  try {
    const answer = await dns.exchange(message);
    reply.header("cache-control", `max-age=${answer.ttlSeconds}`); // RFC 8484 §5.1: no longer than the smallest TTL
    return await reply.type(MEDIA_TYPE).send(answer.message);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error; // a fault of ours: for the log, not for the client
    return refuse(reply, error.message);
  }
}

function refuse(reply: FastifyReply, text: string): FastifyReply {
  return reply.code(500).type("text/plain; charset=utf-8").send(`${text}\n`);
}
