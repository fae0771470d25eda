import type { DatagramFlow, Destination } from "#core/session.ts";

/** Handshake messages that wait for the way; beyond it they are lost, as on the way itself. */
const MOST_WAITING = 4;
/** Between two tries to open a way that cannot be opened. */
const PAUSE_MS = 1_000;

/** The way to a peer's server. */
export interface PeerWay {
  readonly flow: DatagramFlow;
  readonly to: Destination;
}

/** Datagrams to one peer: the way is opened when the first message goes, and anew when it has ended or led to nothing. */
export class PeerLink implements AsyncDisposable {
  readonly #open: () => Promise<PeerWay>;
  readonly #reserved: Uint8Array;
  readonly #on: (message: Buffer) => void;
  readonly #onFailure: (error: unknown) => void;
  #way: PeerWay | null = null;
  #opening: Promise<void> | null = null;
  #nextMs = 0;
  #waiting: Buffer[] = [];
  #closed = false;
  #generation = 0;

  /** `on`: each datagram, lent. `reserved`: three bytes. `onFailure`: why there is no way. */
  constructor(
    open: () => Promise<PeerWay>,
    reserved: Uint8Array,
    on: (message: Buffer) => void,
    onFailure: (error: unknown) => void,
  ) {
    this.#open = open;
    this.#reserved = reserved;
    this.#on = on;
    this.#onFailure = onFailure;
  }

  /** Lent until it returns; its bytes 1 to 3 are written. */
  send(message: Buffer): void {
    message.set(this.#reserved, 1);
    if (this.#way !== null) this.#way.flow.send({ payload: message, destination: this.#way.to });
    else this.#wait(message);
  }

  /** The next message goes by a new way, also where one is being opened now. */
  reopen(): void {
    this.#generation++;
    const way = this.#way;
    this.#way = null;
    if (way !== null) void way.flow[Symbol.asyncDispose]();
  }

  #wait(message: Buffer): void {
    if (this.#closed) return;
    if (this.#waiting.length < MOST_WAITING) this.#waiting.push(Buffer.from(message));
    if (performance.now() >= this.#nextMs) this.#opening ??= this.#begin();
  }

  async #begin(): Promise<void> {
    const generation = this.#generation;
    try {
      const way = await this.#open();
      if (generation === this.#generation) this.#use(way);
      else await way.flow[Symbol.asyncDispose]();
    } catch (error) {
      this.#nextMs = performance.now() + PAUSE_MS;
      this.#waiting = [];
      this.#onFailure(error);
    } finally {
      this.#opening = null;
    }
  }

  #use(way: PeerWay): void {
    const ended = (): void => {
      if (this.#way === way) this.reopen();
    };
    this.#way = way;
    way.flow.receive(({ payload, destination }) => {
      if (isOf(way, destination)) this.#on(bufferOf(payload));
    });
    way.flow.closed.then(ended, ended);
    for (const payload of this.#waiting) way.flow.send({ payload, destination: way.to });
    this.#waiting = [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#waiting = [];
    this.reopen();
    await this.#opening;
  }
}

/** A socket of ours takes datagrams from any address; what carries datagrams for us may name the server in its own way. */
function isOf({ flow, to }: PeerWay, from: Destination): boolean {
  if (flow.localPorts === undefined) return true;
  return from.port === to.port && (to.ip === null ? from.host === to.host : from.ip === to.ip);
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
