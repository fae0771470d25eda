/** The shortest way out: dials the destination itself and relays, without rules, so that an inbound can be tested alone. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect as netConnect } from "node:net";
import { asDialError, DialError } from "#core/errors.ts";
import type { Accept } from "#core/inbound.ts";
import type { Dialer } from "#core/outbound.ts";
import type {
  DatagramFlow,
  DatagramSession,
  Destination,
  Ip,
  Metadata,
  StreamSession,
} from "#core/session.ts";
import { socketIp } from "#net/address/ip.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import { relay } from "#dataplane/event-loop/pump.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { unlimited } from "./relayed.ts";
import { fixReceiveBuffer } from "./small-buffers.ts";

/** Names that tests use; everything else must be an address. */
export type Names = Readonly<Record<string, string>>;

const NAMES: Names = { "origin.test": "127.0.0.1", localhost: "127.0.0.1" };

function addressOf({ host, ip }: Destination): Ip {
  const address = ip ?? (NAMES[host ?? ""] as Ip | undefined);
  if (address === undefined) throw new DialError("resolve", `${host}: unknown name`);
  return address;
}

export const directDialer: Dialer = {
  async connect(destination, { signal }) {
    const host = addressOf(destination);
    const socket = netConnect({ host, port: destination.port, allowHalfOpen: true, noDelay: true });
    const abort = () => socket.destroy();
    signal.addEventListener("abort", abort);
    try {
      await once(socket, "connect", { signal });
    } catch (error) {
      socket.destroy();
      throw asDialError(error, "direct");
    } finally {
      signal.removeEventListener("abort", abort);
    }
    fixReceiveBuffer(socket);
    return socket;
  },
  associate: async () => openDirectFlow(),
};

/** The same, where workers may dial as well. */
export const planningDialer: Dialer = {
  ...directDialer,
  plain: (to) => ({
    ip: addressOf(to),
    port: to.port,
    routingMark: 0,
    interfaceName: "",
    probes: null,
    timeoutMs: 5_000,
    isFirstOfMany: false,
  }),
};

export async function openDirectFlow(localAddress = "127.0.0.1"): Promise<DatagramFlow> {
  const socket = createSocket("udp4");
  socket.bind(0, localAddress);
  await once(socket, "listening");
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let open = true;
  return {
    send({ payload, destination }) {
      if (open) socket.send(Buffer.from(payload), destination.port, addressOf(destination), () => {});
    },
    receive(on) {
      socket.on("message", (payload, { address, port }) =>
        on({ payload, destination: { host: null, ip: socketIp(address), port } }),
      );
    },
    closed,
    async [Symbol.asyncDispose]() {
      if (!open) return;
      open = false;
      socket.close();
      resolve();
    },
  };
}

export interface Seen {
  readonly accept: Accept;
  /** Of every session, in order of arrival. */
  readonly sessions: Metadata[];
}

/** `fail` answers with the failure that a dial shall have; undefined: dial. */
export function directAccept(
  dialer: Dialer = directDialer,
  fail: (metadata: Metadata) => Error | undefined = () => undefined,
  backend: RelayBackend | null = null,
): Seen {
  const sessions: Metadata[] = [];
  const timers = new IdleTimers();
  const accept: Accept = (session) => {
    sessions.push(session.metadata);
    if (session.network === "udp") void serveDatagrams(session, dialer);
    else void serveStream(session, { dialer, timers, backend }, fail(session.metadata));
  };
  return { accept, sessions };
}

async function serveStream(
  session: StreamSession,
  { dialer, timers, backend }: { dialer: Dialer; timers: IdleTimers; backend: RelayBackend | null },
  failure: Error | undefined,
): Promise<void> {
  const { stream, metadata } = session;
  const gone = new AbortController();
  stream.on("error", () => {}).once("close", () => gone.abort());
  try {
    if (failure !== undefined) throw failure;
    const remote = await dialer.connect(metadata.destination, { signal: gone.signal, metadata });
    session.reply(null);
    await relay(stream, remote, unlimited, {
      signal: new AbortController().signal,
      onBytes: () => {},
      timers,
      idleMs: Infinity,
      halfClosedIdleMs: Infinity,
      backend,
    });
  } catch (error) {
    session.reply(error as Error);
    if (!stream.destroyed) stream.end(() => stream.destroy());
  }
}

async function serveDatagrams({ flow, metadata }: DatagramSession, dialer: Dialer): Promise<void> {
  const far = await dialer.associate(metadata.destination, {
    signal: new AbortController().signal,
    metadata,
  });
  far.receive((item) => {
    flow.send(item);
    item.payload.fill(0); // as its lender may: the receiver may not have kept it
  });
  flow.receive((item) => far.send(item));
  await Promise.race([flow.closed, far.closed]);
  await far[Symbol.asyncDispose]();
  await flow[Symbol.asyncDispose]();
}
