/** A UDP socket that receives what was on its way to others, in the vocabulary of the core. */
import type { Destination, Endpoint } from "#core/session.ts";
import type { ReplySocket, TransparentSocket } from "#core/sockets.ts";
import {
  openTransparentSockets,
  type Control,
  type RawEndpoint,
  type RawReplySocket,
} from "#platform/transparent.ts";
import { ANY_V4, ANY_V6, bytesOfIp, familyOf, ipFromBytes } from "#net/address/ip.ts";
import { PeerNames } from "#net/address/peer-names.ts";
import { errnoOf } from "#core/errors.ts";

export interface OpenedTransparentUdp {
  readonly socket: TransparentSocket;
  readonly fd: number;
  /** Reads no more; its replies go on. */
  pause(): void;
  close(): void;
}

export interface TransparentUdpAsk {
  /** Another socket of ours has the port at an address that overlaps. */
  readonly overlap: boolean;
  /** A descriptor that is bound already, and owned from here on; null, absent: none. */
  readonly inherited?: number | null;
}

/** Throws `ConfigError`, `SystemError`. */
export function openTransparentUdp(
  at: Endpoint,
  { overlap, inherited = null }: TransparentUdpAsk,
): OpenedTransparentUdp {
  const sockets = openTransparentSockets();
  const raw =
    inherited === null
      ? listen(at, (endpoint) => sockets.listen(rawOf(endpoint), overlap))
      : sockets.adopt(inherited);
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const peers = new PeerNames(raw.local.address.length === 16);
  const destinationOf = rememberDestinations();
  const socket: TransparentSocket = {
    local: endpointOf(raw.local),
    closed,
    receive(on) {
      raw.receive((payload, name, control) => {
        const source = peers.endpointOf(name);
        const destination = destinationOf(control);
        if (source === null || destination === null) return; // the kernel did not say where it was going
        on({ payload, source, destination, dscp: control.dscp });
      });
    },
    replyAs: (from, mark) => replySocket(from, sockets.replyAs(rawOf(from), mark)),
  };
  return {
    socket,
    fd: raw.fd,
    pause: () => raw.pause(),
    close() {
      raw.close();
      resolve();
    },
  };
}

/** The same object as before for what was said before: most datagrams go where the one before went. */
function rememberDestinations(): (control: Control) => Destination | null {
  let last: RawEndpoint | null = null;
  let destination: Destination | null = null;
  return ({ original }) => {
    if (original !== last) {
      last = original;
      destination = original === null ? null : { host: null, ...endpointOf(original) };
    }
    return destination;
  };
}

function replySocket({ ip }: Endpoint, raw: RawReplySocket): ReplySocket {
  const family = familyOf(ip);
  const peers = new PeerNames(family === 6);
  return {
    send(payload, to) {
      if (familyOf(to.ip) === family) raw.send(payload, peers.nameOf(to.ip, to.port));
    },
    close: () => raw.close(),
  };
}

/** A machine without IPv6: "all families" is IPv4 then. */
function listen<Made>(at: Endpoint, open: (at: Endpoint) => Made): Made {
  try {
    return open(at);
  } catch (error) {
    if (at.ip !== ANY_V6 || errnoOf(error) !== "EAFNOSUPPORT") throw error;
    return open({ ...at, ip: ANY_V4 });
  }
}

function rawOf({ ip, port }: Endpoint): RawEndpoint {
  return { address: bytesOfIp(ip), port };
}

function endpointOf({ address, port }: RawEndpoint): Endpoint {
  return { ip: ipFromBytes(address), port };
}
