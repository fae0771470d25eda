import type { Duplex } from "node:stream";
import * as z from "zod";
import { validateHeaderName, validateHeaderValue } from "#lib/node-http.ts";
import { ConfigError, DialError } from "#core/errors.ts";
import { flag, secret, text } from "#core/fields.ts";
import { serverFields } from "#core/node-fields.ts";
import type { DialContext, Outbound, OutboundEnv } from "#core/outbound.ts";
import { TCP_ONLY } from "#core/outbound.ts";
import { outboundSide } from "#core/protocol.ts";
import { destinationText, type Destination } from "#core/session.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { openProxyLink, type ProxyLink } from "#protocols/mixed/proxy-link.ts";
import { headerMap, tlsClientFields } from "#transport/tls/fields.ts";
import { encodeBasic } from "./credentials.ts";
import { decodeStatus } from "./head.ts";

const schema = z.object({
  ...serverFields,
  username: text().default(""),
  password: secret().default(""),
  headers: headerMap().default({}),
  tls: flag().default(false),
  sni: text().optional(),
  ...tlsClientFields,
});
type Options = z.output<typeof schema>;

export const httpOutbound = outboundSide("Http", schema, open);

async function open(options: Options, env: OutboundEnv): Promise<Outbound> {
  const link = await openProxyLink(options, env, ["http/1.1"]);
  const fields = fieldsOf(options, env.name);
  return {
    name: env.name,
    type: "Http",
    networks: TCP_ONLY,
    connect: (destination, context) => connect(link, fields, destination, context),
    async associate() {
      throw new DialError("unsupported", `${env.name}: an HTTP proxy carries no UDP`);
    },
    async [Symbol.asyncDispose]() {},
  };
}

/** A name from any inbound comes here; it must not be able to end its line. */
// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const UNSAFE = /[\0-\x20\x7f]/;

async function connect(
  link: ProxyLink,
  fields: ReadonlyMap<string, string>,
  destination: Destination,
  context: DialContext,
): Promise<Duplex> {
  const authority = destinationText(destination);
  if (UNSAFE.test(authority))
    throw new DialError("failed", `${link.where}: the name holds characters that a request must not hold`);
  return link.open(context, async (stream, signal) => {
    using reader = new ByteReader(stream, { signal });
    stream.write(encodeConnect(authority, fields));
    for (;;) {
      const status = await reader.take(decodeStatus);
      if (status < 200) continue; // 1xx announces the answer, it is none
      if (status < 300) return stream;
      throw refusal(status, link.where);
    }
  });
}

function encodeConnect(authority: string, fields: ReadonlyMap<string, string>): string {
  const all = new Map([["Host", authority], ...fields]);
  const lines = [...all].map(([name, value]) => `${name}: ${value}\r\n`);
  return `CONNECT ${authority} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** The configured headers go last, so one of them may replace `Host` or `Proxy-Authorization`. */
function fieldsOf({ username, password, headers }: Options, node: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  if (username !== "" || password !== "") fields.set("Proxy-Authorization", encodeBasic(username, password));
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch (cause) {
      throw new ConfigError(`proxy ${node}: headers: ${name} cannot be sent as an HTTP header`, { cause });
    }
    fields.set(OURS.get(name.toLowerCase()) ?? name, value);
  }
  return fields;
}

const OURS = new Map([
  ["host", "Host"],
  ["proxy-authorization", "Proxy-Authorization"],
]);

function refusal(status: number, where: string): DialError {
  if (status === 407) return new DialError("failed", `${where}: the proxy wants other credentials (407)`);
  return new DialError(status === 504 ? "timeout" : "failed", `${where}: the proxy answered ${status}`);
}
