import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import type { Datagram, DatagramFlow, Destination } from "#core/session.ts";
import { decodeDatagram, encodeDatagramHeader } from "./wire.ts";

/**
 * Datagrams through a SOCKS5 relay: `inner` carries them there, `control` is the TCP connection that the association
 * lives as long as. Owns both. Datagrams from elsewhere than the relay are dropped.
 */
export function relayedFlow(control: Duplex, inner: DatagramFlow, relay: Destination): DatagramFlow {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let open = true;
  const close = async (): Promise<void> => {
    if (!open) return;
    open = false;
    control.destroy();
    resolve();
    await inner[Symbol.asyncDispose]();
  };
  const onEnd = (): void => void close().catch(() => {}); // its path is gone, and there is nothing to report
  control.on("error", onEnd).on("end", onEnd).on("close", onEnd).resume();
  inner.closed.then(onEnd, onEnd);
  if (control.destroyed || control.readableEnded) onEnd();
  return {
    send({ payload, destination }) {
      const header = headerOf(destination);
      if (open && header !== null)
        inner.send({ payload: Buffer.concat([header, payload]), destination: relay });
    },
    receive(on) {
      inner.receive(({ payload, destination: from }) => {
        const item = open && isRelay(from, relay) ? decodeDatagram(payload) : null;
        if (item !== null) on(item);
      });
    },
    closed,
    [Symbol.asyncDispose]: close,
  };
}

/** Null for a name that does not fit: such a datagram cannot go anywhere. */
function headerOf(destination: Datagram["destination"]): Buffer | null {
  try {
    return encodeDatagramHeader(destination, "host");
  } catch (error) {
    if (error instanceof DialError) return null;
    throw error;
  }
}

function isRelay(from: Destination, relay: Destination): boolean {
  return from.port === relay.port && (relay.ip === null || from.ip === null || from.ip === relay.ip);
}
