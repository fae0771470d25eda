/** DNS over dedicated QUIC connections (RFC 9250): a stream for each question, and no ids. */
import { ProtocolError } from "#core/errors.ts";
import type { NameserverOptions } from "#core/dns-options.ts";
import { paddedQuery } from "#dns/edns.ts";
import { FrameReader, frameOf } from "#dns/frames.ts";
import { HEADER_BYTES } from "#dns/types.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { inDialTime } from "./dial.ts";
import type { AskingClient, DialClient } from "./kept-client.ts";
import { QuicQuestions, quicServer } from "./quic-client.ts";
import type { UpstreamEnv } from "./upstream.ts";
import { checkAnswers, idOf } from "./wire.ts";

// RFC 9250 §4.3, §8.4
const NO_ERROR = 0x0;
const PROTOCOL_ERROR = 0x2;
const REQUEST_CANCELLED = 0x3;

const DOQ = { alpn: "doq", noError: NO_ERROR, cancelled: REQUEST_CANCELLED };

/** Connections that live until `life` aborts, and go on with each other's sessions. Rejects where one does not come about in time. */
export function doqDial(server: NameserverOptions, env: UpstreamEnv): DialClient {
  const to = quicServer(server, env, DOQ, true);
  return (life) =>
    inDialTime(server.text, life, async (signal) =>
      doqClient(server.text, await QuicQuestions.open(to, signal)),
    );
}

function doqClient(text: string, questions: QuicQuestions): AskingClient {
  return {
    async ask(query, signal) {
      const message = paddedQuery(query);
      const answer = await questions.ask(async (stream) => {
        stream.end(frameOf(message));
        return readFrame(stream, text);
      }, signal);
      if (answer !== null && answer.length >= HEADER_BYTES && idOf(answer) === 0) {
        checkAnswers(message, answer);
        return answer;
      }
      questions.close(PROTOCOL_ERROR); // RFC 9250 §4.3.3
      throw new ProtocolError(`${text} sent no whole message, or one with an id`);
    },
    retire: () => questions.retire(),
    close: () => questions.close(),
  };
}

/** The first message; null: the stream ended before. Rejects with what broke it. */
function readFrame(stream: QuicStream, text: string): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const frames = new FrameReader(resolve);
    stream.on("data", (chunk: Buffer) => frames.push(chunk));
    stream.once("end", () => resolve(null));
    stream.once("error", reject);
    stream.once("close", () => reject(new Error(`${text} closed the stream`)));
  });
}
