/**
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). A client that reads too slowly is
 * disconnected, not skipped: it comes back with the id of the last event that it has.
 */
import type { Call } from "./route.ts";
import { isGone, type Subscribers } from "./subscriber.ts";

const QUEUE_BYTES = 1_048_576;
/** Keeps proxies between from closing the connection. */
const COMMENT_MS = 15_000;

export interface EventMessage {
  /** Absent: the client's last one stays. */
  readonly id?: string;
  readonly event: string;
  /** One line. */
  readonly data: string;
}

export interface EventStream {
  send(message: EventMessage): void;
  onClose(callback: () => void): void;
}

/** Throws `ApiError` 503 where there are too many streams. */
export function openEventStream(call: Call, subscribers: Subscribers): EventStream {
  const { reply } = call;
  const response = reply.raw;
  subscribers.enter(call, {
    close: () => response.destroy(),
    onClose: (callback) => (isGone(response) ? callback() : void response.once("close", callback)),
  });
  const headers = Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined);
  reply.hijack();
  response.on("error", () => response.destroy()); // the client has gone
  for (const [name, value] of headers) if (value !== undefined) response.setHeader(name, value);
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  response.flushHeaders();
  const write = (text: string): void => {
    if (isGone(response)) return;
    response.write(text);
    if (response.writableLength > QUEUE_BYTES) response.destroy();
  };
  const comment = setInterval(() => write(": \n\n"), COMMENT_MS).unref();
  const onClose = (callback: () => void): void =>
    isGone(response) ? callback() : void response.once("close", callback);
  onClose(() => clearInterval(comment));
  return {
    send: ({ id, event, data }) =>
      write(`${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${data}\n\n`),
    onClose,
  };
}
