/**
 * A client of an endless stream, over a WebSocket or as newline-delimited JSON. What a subscriber does not
 * read waits in a bounded queue of its own; at the bound its next records are dropped, and other subscribers are not affected.
 */
import type { ServerResponse } from "node:http";
import { WebSocketServer, type WebSocket } from "ws";
import type { Caller } from "#core/access.ts";
import { ApiError } from "#core/errors.ts";
import { Duplex } from "node:stream";
import type { Call } from "./route.ts";
import type { Upgrade } from "./upgrade.ts";

/** One record may start while the queue is below this; then the next waits until it has drained. Beyond: dropped. */
const QUEUE_BYTES = 1_048_576;
/** Of a record in parts no further part is made while so much waits. */
const PARTS_QUEUE_BYTES = 262_144;
const MAX_SUBSCRIBERS = 256;
const PING_MS = 30_000;
/** Clients have nothing to say; more than this in one message ends the connection. */
const MAX_CLIENT_MESSAGE_BYTES = 65_536;

const VERSION = "13";

type Ending = Pick<Subscriber, "close" | "onClose">;

export interface Subscriber {
  /** One JSON document. False: dropped, the client reads too slowly. */
  send(json: string): boolean;
  /**
   * One JSON document, made part by part as fast as the client takes it: however large it is, little of it waits. False:
   * the one before has not left yet, nothing is made.
   */
  sendParts(parts: Iterable<string>): boolean;
  /** Bytes that the client has not taken yet. */
  readonly queuedBytes: number;
  /** Called once, also when the subscriber has gone already. */
  onClose(callback: () => void): void;
  /** Ends the stream. */
  close(): void;
}

/** All subscribers of one server. */
export class Subscribers implements Disposable {
  readonly #open = new Set<Ending>();
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_CLIENT_MESSAGE_BYTES,
    handleProtocols: () => false,
  });

  /** Takes the connection of this call over. Throws `ApiError` 503 where there are too many. */
  add({ upgrade, reply, caller }: Call): Subscriber | null {
    if (this.#open.size >= MAX_SUBSCRIBERS) throw new ApiError(503, "too many open streams");
    if (upgrade !== null && upgrade.request.headers["sec-websocket-version"] !== VERSION) {
      reply.header("sec-websocket-version", VERSION); // RFC 6455 §4.4; the library would also take a draft
      throw new ApiError(400, `expected WebSocket version ${VERSION}`);
    }
    reply.hijack();
    const subscriber =
      upgrade === null ? ndjson(reply.raw, reply.getHeaders()) : handshake(this.#sockets, upgrade);
    if (subscriber !== null) this.#follow(caller, subscriber);
    return subscriber;
  }

  /** The same for a stream of another form, which takes the connection over by itself. */
  enter({ caller }: Pick<Call, "caller">, stream: Ending): void {
    if (this.#open.size >= MAX_SUBSCRIBERS) throw new ApiError(503, "too many open streams");
    this.#follow(caller, stream);
  }

  /** A stream ends with the server, and with the token that opened it. */
  #follow({ token }: Caller, stream: Ending): void {
    this.#open.add(stream);
    const end = (): void => stream.close();
    token?.gone.addEventListener("abort", end);
    stream.onClose(() => {
      this.#open.delete(stream);
      token?.gone.removeEventListener("abort", end);
    });
  }

  [Symbol.dispose](): void {
    for (const subscriber of this.#open) subscriber.close();
  }
}

/** Null: the handshake was faulty and has been answered. */
function handshake(sockets: WebSocketServer, upgrade: Upgrade): Subscriber | null {
  upgrade.response.detachSocket(upgrade.socket);
  let subscriber: Subscriber | null = null;
  sockets.handleUpgrade(upgrade.request, upgrade.socket, upgrade.head, (socket) => {
    subscriber = overWebSocket(socket);
  });
  return subscriber;
}

function overWebSocket(socket: WebSocket): Subscriber {
  let answered = true;
  const pinging = setInterval(() => {
    if (!answered) return socket.terminate(); // neither reads nor answers: as good as gone
    answered = false;
    socket.ping();
  }, PING_MS).unref();
  socket.on("pong", () => (answered = true));
  socket.on("error", () => socket.terminate()); // a client that breaks the protocol loses its connection
  socket.on("close", () => clearInterval(pinging));
  let isBusy = false;
  /** Fragments of one message (RFC 6455 §5.4); pings may be sent between them. */
  const goOn = (parts: Iterator<string>): void => {
    while (socket.readyState === socket.OPEN) {
      const { value, done = false } = parts.next();
      isBusy = !done;
      if (done) return socket.send("", { fin: true });
      const isFull = socket.bufferedAmount + value.length > PARTS_QUEUE_BYTES;
      // once it has left; an error closes the socket
      if (isFull) return socket.send(value, { fin: false }, () => guarded(subscriber, () => goOn(parts)));
      socket.send(value, { fin: false });
    }
  };
  const subscriber: Subscriber = {
    sendParts(parts) {
      if (isBusy || socket.readyState !== socket.OPEN || socket.bufferedAmount > 0) return false;
      goOn(parts[Symbol.iterator]());
      return true;
    },
    send(json) {
      if (socket.readyState !== socket.OPEN || socket.bufferedAmount > QUEUE_BYTES) return false;
      socket.send(json);
      return true;
    },
    get queuedBytes() {
      return socket.bufferedAmount;
    },
    onClose(callback) {
      if (socket.readyState === socket.CLOSED) callback();
      else socket.once("close", callback);
    },
    close() {
      socket.close(1001);
      socket.terminate(); // the close frame is in the kernel by now, or the client was not reading
    },
  };
  return subscriber;
}

/** Of an answer, by lower-case names. */
type Headers = Readonly<Record<string, string | number | string[] | undefined>>;

function ndjson(response: ServerResponse, headers: Headers): Subscriber {
  response.on("error", () => response.destroy()); // the client has gone
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined) response.setHeader(name, value);
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();
  return {
    send(json) {
      if (isGone(response) || response.writableLength > QUEUE_BYTES) return false;
      response.write(`${json}\n`);
      return true;
    },
    sendParts(parts) {
      return response.writableLength === 0 && this.send([...parts].join(""));
    },
    get queuedBytes() {
      return response.writableLength;
    },
    onClose(callback) {
      if (isGone(response)) callback();
      else response.once("close", callback);
    },
    close() {
      response.destroy();
    },
  };
}

/** An answer over HTTP/2 does not say so itself, its stream does. */
export function isGone(response: ServerResponse): boolean {
  const { destroyed } =
    "stream" in response && response.stream instanceof Duplex ? response.stream : response;
  return destroyed;
}

/** Calls `tick` at a steady pace until the subscriber leaves. */
export function every(intervalMs: number, subscriber: Subscriber, tick: () => void): void {
  const timer = setInterval(() => guarded(subscriber, tick), intervalMs);
  subscriber.onClose(() => clearInterval(timer));
}

/** A fault of the core ends this stream, not the process; asked for by a plain request it shows and is logged. */
export function guarded(subscriber: Subscriber, tick: () => void): void {
  try {
    tick();
  } catch {
    subscriber.close();
  }
}
