import * as z from "zod";
import { choice, leftOut, list, scalar, Unsupported } from "#core/fields.ts";
import type { Inbound, InboundEnv } from "#core/inbound.ts";
import { inboundSide, type Protocol } from "#core/protocol.ts";
import type { Destination, Endpoint } from "#core/session.ts";
import { describe } from "#net/listen/accept.ts";
import { parseIp, toDestination } from "#net/address/ip.ts";
import { listenSilently } from "#net/listen/silent-sources.ts";
import { UdpClients } from "#net/udp/udp-clients.ts";
import { descriptions } from "./descriptions.ts";

const TARGET = /^(?:\[([^\]]+)\]|([^\s:[\]/]{1,255})):(\d{1,5})$/;

/** `host:port`, an IPv6 address in brackets. Null where it is neither. */
export function parseTarget(text: string): Destination | null {
  const match = TARGET.exec(text);
  if (match === null) return null;
  const [, literal, host, digits] = match;
  const port = Number(digits);
  if (port < 1 || port > 65535 || (literal !== undefined && parseIp(literal) === null)) return null;
  return toDestination(literal ?? host ?? "", port);
}

const target = () =>
  scalar({ type: "string" }, (source) =>
    parseTarget(source) === null
      ? new Unsupported("expected host:port, an IPv6 address in brackets")
      : source,
  );

const schema = z.object({ network: list(leftOut(choice(["tcp", "udp"]))), target: target() });
export type TunnelOptions = z.output<typeof schema>;

/** Everything that comes to the listener goes to one target. */
export const tunnel: Protocol = { type: "tunnel", inbound: inboundSide(schema, open), descriptions };

async function open(options: TunnelOptions, env: InboundEnv): Promise<Inbound> {
  const destination = parseTarget(options.target) as Destination; // the schema has looked at it
  const tcp = options.network.includes("tcp") ? await listenTcp(destination, env) : [];
  const udp = options.network.includes("udp") ? await listenUdp(destination, env) : [];
  return { name: env.name, type: "tunnel", endpoints: [...tcp, ...udp], async [Symbol.asyncDispose]() {} };
}

function listenTcp(destination: Destination, env: InboundEnv): Promise<readonly Endpoint[]> {
  const asked = { network: "tcp", type: "Tunnel", user: null, destination } as const;
  const { ip, port } = destination;
  return listenSilently(env, {
    handshake: ip === null ? { handshake: "none" } : { handshake: "none", destination: { ip, port } },
    describe: (client) => describe(env, client, asked),
  });
}

/** Clients of one port; a datagram of one more is dropped. */
const MAX_SOURCES = 4096;

function listenUdp(destination: Destination, env: InboundEnv): Promise<readonly Endpoint[]> {
  return env.listenUdp((socket) => {
    const { local } = socket;
    const asked = { network: "udp", type: "Tunnel", user: null, destination } as const;
    const clients = new UdpClients(
      MAX_SOURCES,
      (source, flow) =>
        env.accept({ network: "udp", metadata: describe(env, { source, local }, asked), flow }),
      (item, source) => socket.send(item.payload, source),
    );
    socket.receive((payload, source) => clients.deliver(source, { payload, destination }));
    void socket.closed.then(() => clients.close());
  });
}
