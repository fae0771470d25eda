/** What the proxy itself answers. One line of text each; nothing about how the program is set up. */
import type { DialFailure } from "#core/errors.ts";
import { DialError } from "#core/errors.ts";

export interface Answer {
  readonly status: number;
  readonly reason: string;
  readonly text: string;
  readonly fields?: Readonly<Record<string, string>>;
}

export const BAD_REQUEST: Answer = {
  status: 400,
  reason: "Bad Request",
  text: "This is a proxy: it takes CONNECT host:port and requests with a whole http:// URL.",
};

export const AUTHENTICATION_REQUIRED: Answer = {
  status: 407,
  reason: "Proxy Authentication Required",
  text: "This proxy wants a user name and a password.",
  fields: { "Proxy-Authenticate": 'Basic realm="proxy"' },
};

const forbidden = (text: string): Answer => ({ status: 403, reason: "Forbidden", text });
const badGateway = (text: string): Answer => ({ status: 502, reason: "Bad Gateway", text });

/** `peer`: what was dialled. */
const answersAbout = (peer: string): Readonly<Record<DialFailure, Answer>> => ({
  rejected: forbidden("A rule rejects this destination."),
  dropped: forbidden("A rule rejects this destination."),
  forbidden: forbidden("This proxy does not connect you to that address."),
  resolve: badGateway(`The ${peer} has no address.`),
  refused: badGateway(`The ${peer} refused the connection.`),
  unreachable: badGateway(`The ${peer} cannot be reached.`),
  timeout: { status: 504, reason: "Gateway Timeout", text: `The ${peer} did not answer in time.` },
  aborted: badGateway("The connection was given up."),
  unsupported: badGateway("The way out cannot carry this connection."),
  failed: badGateway(`The connection to the ${peer} failed.`),
});

const AT_DESTINATION = answersAbout("destination");
const AT_NODE = answersAbout("proxy node on the way");

/** Null: say nothing at all (REJECT-DROP). */
export function answerTo(failure: Error): Answer | null {
  if (!(failure instanceof DialError)) return AT_DESTINATION.failed;
  if (failure.reason === "dropped") return null;
  return (failure.atNode ? AT_NODE : AT_DESTINATION)[failure.reason];
}

/** Head and body; the fields that `encodeAnswer` and the request library both need. */
export function answerFields({ text, fields }: Answer): Record<string, string> {
  return {
    ...fields,
    "Content-Type": "text/plain; charset=utf-8",
    "Content-Length": String(Buffer.byteLength(text) + 1),
  };
}

export function encodeAnswer(answer: Answer, version: "1.0" | "1.1", persistent: boolean): string {
  const state = persistent ? "keep-alive" : "close";
  const fields = { ...answerFields(answer), Connection: state, "Proxy-Connection": state };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/${version} ${answer.status} ${answer.reason}\r\n${lines.join("")}\r\n${answer.text}\n`;
}
