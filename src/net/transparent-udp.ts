/** A UDP socket that receives what was on its way to others, in the vocabulary of the core. */
import type { Endpoint } from "#core/session.ts";
import type { ReplySocket, TransparentSocket } from "#core/sockets.ts";
import { openTransparentSockets, type RawEndpoint, type RawReplySocket } from "#platform/transparent.ts";
import { ANY_V4, ANY_V6, bytesOfIp, familyOf, ipFromBytes } from "./ip.ts";

export interface OpenedTransparentUdp {
  readonly socket: TransparentSocket;
  readonly fd: number;
  close(): void;
}

/** `overlap`: another socket of ours has the port at an address that overlaps. Throws `ConfigError`, `SystemError`. */
export function openTransparentUdp(at: Endpoint, overlap: boolean): OpenedTransparentUdp {
  const sockets = openTransparentSockets();
  const raw = listen(at, (endpoint) => sockets.listen(rawOf(endpoint), overlap));
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const socket: TransparentSocket = {
    local: endpointOf(raw.local),
    closed,
    receive(on) {
      raw.receive((payload, source, { original, dscp }) => {
        if (original === null) return; // the kernel did not say where it was going
        const { ip, port } = endpointOf(original);
        on({ payload, source: endpointOf(source), destination: { host: null, ip, port }, dscp });
      });
    },
    replyAs: (from, mark) => replySocket(from, sockets.replyAs(rawOf(from), mark)),
  };
  return {
    socket,
    fd: raw.fd,
    close() {
      raw.close();
      resolve();
    },
  };
}

function replySocket({ ip }: Endpoint, raw: RawReplySocket): ReplySocket {
  const family = familyOf(ip);
  return {
    send(payload, to) {
      if (familyOf(to.ip) === family) raw.send(payload, rawOf(to));
    },
    close: () => raw.close(),
  };
}

/** A machine without IPv6: "all families" is IPv4 then. */
function listen<Made>(at: Endpoint, open: (at: Endpoint) => Made): Made {
  try {
    return open(at);
  } catch (error) {
    if (at.ip !== ANY_V6 || (error as NodeJS.ErrnoException).code !== "EAFNOSUPPORT") throw error;
    return open({ ...at, ip: ANY_V4 });
  }
}

function rawOf({ ip, port }: Endpoint): RawEndpoint {
  return { address: bytesOfIp(ip), port };
}

function endpointOf({ address, port }: RawEndpoint): Endpoint {
  return { ip: ipFromBytes(address), port };
}
