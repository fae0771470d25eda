/** Managed users that move checked bytes through every carrier that a managed listener can have. */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import type { Dialer, Outbound } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { hysteria2 } from "#protocols/hysteria2/index.ts";
import { tuic } from "#protocols/tuic/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { directDialer, openDirectFlow } from "./direct-accept.ts";
import { TLS_KEYS, type UserJson } from "./managed-core.ts";
import { openClient } from "./protocol-pair.ts";

export const FOREVER = new AbortController().signal;

/** Connects to a listener from another address of loopback. */
export function dialerFrom(localAddress: string): Dialer {
  return {
    ...directDialer,
    async connect({ ip, port }) {
      const socket = connect({ host: ip as string, port, localAddress, allowHalfOpen: true, noDelay: true });
      await once(socket, "connect");
      return socket;
    },
    associate: () => openDirectFlow(localAddress),
  };
}

export interface Carrier {
  /** Name of the listener, too. */
  readonly tag: string;
  readonly protocol: "vless" | "anytls" | "hysteria2" | "tuic";
  /** Keys of the listener besides those that all have. */
  readonly keys: string;
  /** `dialer` reaches the listener; absent: from 127.0.0.1. */
  open(port: number, user: Pick<UserJson, "uuid" | "password">, dialer?: Dialer): Promise<Outbound>;
  /** Which side learns from the other that a flow of datagrams has ended; the others only notice that it is silent. */
  readonly tellsEndOfFlow: { readonly toListener: boolean; readonly toClient: boolean };
  /** Another value for what the user proves itself with. */
  another(): { readonly uuid: string } | { readonly password: string };
}

export const CLIENT_TLS = { tls: true, "skip-cert-verify": true, servername: "localhost", udp: true };

export function ofVless(tag: string, keys: string, options: object): Carrier {
  return {
    tag,
    protocol: "vless",
    keys: `    users: []\n${keys}`,
    open: (port, { uuid }, dialer) =>
      openClient(
        vless,
        { server: "127.0.0.1", port, uuid, ...options },
        dialer === undefined ? {} : { dialer },
      ),
    tellsEndOfFlow: { toListener: true, toClient: true },
    another: () => ({ uuid: randomUUID() }),
  };
}

export const ANYTLS: Carrier = {
  tag: "anytls",
  protocol: "anytls",
  keys: `    users: {}\n${TLS_KEYS}`,
  open: (port, { password }, dialer) =>
    openClient(
      anytls,
      { server: "127.0.0.1", port, password, udp: true, "skip-cert-verify": true },
      dialer === undefined ? {} : { dialer },
    ),
  tellsEndOfFlow: { toListener: true, toClient: true },
  another: () => ({ password: randomBytes(8).toString("hex") }),
};

const QUIC_CLIENT = { server: "127.0.0.1", "skip-cert-verify": true };

/** Everything of a client in one connection, which is the client's own until the node is disposed of. */
export const HYSTERIA2: Carrier = {
  tag: "hysteria2",
  protocol: "hysteria2",
  keys: `    users: {}\n${TLS_KEYS}`,
  open: (port, { password }, dialer = directDialer) =>
    openClient(hysteria2, { ...QUIC_CLIENT, port, password }, { dialer }),
  tellsEndOfFlow: { toListener: false, toClient: false },
  another: () => ({ password: randomBytes(8).toString("hex") }),
};

export const TUIC: Carrier = {
  tag: "tuic",
  protocol: "tuic",
  keys: `    users: {}\n    authentication-timeout: 10000 # a busy machine exceeds the second of the protocol\n${TLS_KEYS}`,
  open(port, { password: credential }, dialer = directDialer) {
    const [uuid = "", password = ""] = credential.split(":");
    return openClient(tuic, { ...QUIC_CLIENT, port, uuid, password }, { dialer });
  },
  tellsEndOfFlow: { toListener: true, toClient: false },
  another: () => ({ password: `${randomUUID()}:${randomBytes(8).toString("hex")}` }),
};

export const CARRIERS: readonly Carrier[] = [
  ofVless("tls", TLS_KEYS, CLIENT_TLS),
  ofVless("ws", `    ws-path: /ws\n${TLS_KEYS}`, {
    ...CLIENT_TLS,
    network: "ws",
    "ws-opts": { path: "/ws" },
  }),
  ofVless("grpc", `    grpc-service-name: svc\n${TLS_KEYS}`, {
    ...CLIENT_TLS,
    network: "grpc",
    "grpc-opts": { "grpc-service-name": "svc" },
  }),
  ANYTLS,
  HYSTERIA2,
  TUIC,
];

/** For `ManagedCore.start`: a managed listener a carrier. */
export function carrierListeners(carriers: readonly Carrier[]): {
  readonly listeners: string;
  readonly managed: readonly string[];
} {
  const written = ({ tag, protocol, keys }: Carrier) =>
    `  - name: ${tag}\n    type: ${protocol}\n    listen: 127.0.0.1\n    port: 0\n${keys}`;
  return { listeners: carriers.map(written).join(""), managed: carriers.map(({ tag }) => tag) };
}

/** Sends chunk after chunk to an echo, each when the one before has come back; every byte goes into two hashes. */
export class Transfer {
  readonly stream: Duplex;
  /** When the other end closed it, or we did. */
  readonly closed: Promise<number>;
  rounds = 0;
  readonly #chunkBytes: number;
  readonly #pauseMs: number;
  #sent = createHash("sha256");
  #got = createHash("sha256");
  #waiting = 0;
  #stopping = false;
  readonly #stopped = Promise.withResolvers<void>();

  constructor(stream: Duplex, { chunkBytes = 4096, pauseMs = 20 } = {}) {
    this.stream = stream;
    this.#chunkBytes = chunkBytes;
    this.#pauseMs = pauseMs;
    stream.on("error", () => {}); // an end by force is what some tests want
    this.closed = new Promise((resolve) => {
      for (const event of ["end", "close"]) stream.once(event, () => resolve(performance.now()));
    });
    stream.once("end", () => stream.destroy());
    stream.on("data", (bytes: Buffer) => this.#onData(bytes));
    this.#send();
  }

  static async open(
    outbound: Outbound,
    to: Destination,
    pace?: { readonly chunkBytes: number; readonly pauseMs: number },
  ): Promise<Transfer> {
    return new Transfer(await outbound.connect(to, { signal: FOREVER, metadata: null }), pace);
  }

  /** Bytes of finished rounds, per direction. */
  get bytes(): number {
    return this.rounds * this.#chunkBytes;
  }

  /** Settles when the first chunk has come back. Throws where the stream closed before. */
  async running(): Promise<this> {
    while (this.rounds === 0) {
      if (this.stream.destroyed) throw new Error("the transfer was cut before anything came back");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return this;
  }

  #send(): void {
    if (this.stream.destroyed) return;
    const chunk = randomBytes(this.#chunkBytes);
    this.#sent.update(chunk);
    this.#waiting = this.#chunkBytes;
    this.stream.write(chunk);
  }

  #onData(bytes: Buffer): void {
    this.#got.update(bytes);
    this.#waiting -= bytes.length;
    if (this.#waiting > 0) return;
    this.rounds++;
    if (this.#stopping) this.#stopped.resolve();
    else setTimeout(() => this.#send(), this.#pauseMs);
  }

  /** Settles when all that was sent has come back; false where a byte was changed or the stream was cut. */
  async finish(): Promise<boolean> {
    this.#stopping = true;
    await Promise.race([this.#stopped.promise, this.closed]);
    const intact = !this.stream.destroyed && this.#sent.digest("hex") === this.#got.digest("hex");
    this.stream.destroy();
    return intact;
  }
}

/** Does the user get a byte through and back? */
export async function isServed(outbound: Outbound, to: Destination): Promise<boolean> {
  try {
    const stream = await outbound.connect(to, { signal: AbortSignal.timeout(20_000), metadata: null });
    stream.on("error", () => {}); // the answer is that it closes
    const answer = new Promise<boolean>((resolve) => {
      stream.once("data", () => resolve(true));
      for (const event of ["end", "close"]) stream.once(event, () => resolve(false));
    });
    stream.write("?");
    const served = await answer;
    stream.destroy();
    return served;
  } catch {
    return false; // refused while it dialled
  }
}
