import type { InboundEnv } from "#core/inbound.ts";
import type { Destination } from "#core/session.ts";
import { describe, farewell, streamSession } from "#net/accept.ts";
import type { Client } from "#protocols/mixed/front.ts";
import { answerTo, encodeAnswer } from "./answers.ts";

/** Hands a client that asked for CONNECT over. The client learns the outcome when the dial is decided. */
export function openTunnel(
  { stream, arrival }: Client,
  version: "1.0" | "1.1",
  user: string | null,
  destination: Destination,
  env: InboundEnv,
): void {
  const metadata = describe(env, arrival, { network: "tcp", type: "HTTPS", user, destination });
  const tell = (failure: Error | null): void => {
    if (failure === null) {
      stream.write(`HTTP/${version} 200 Connection established\r\n\r\n`);
      return;
    }
    const answer = answerTo(failure);
    if (answer === null) stream.destroy();
    else farewell(stream, encodeAnswer(answer, version, false));
  };
  env.accept(streamSession(metadata, stream, tell));
}
