/** GET over HTTP/3 (RFC 9114), as `HttpClient` has it. */
import type { NameserverOptions } from "#core/dns-options.ts";
import { MAX_MESSAGE_BYTES } from "#dns/types.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { encodeHeaders, NO_ERROR } from "#transport/http3/request.ts";
import { openControlStream, REQUEST_CANCELLED } from "#transport/http3/request.ts";
import { readResponse } from "#transport/http3/response.ts";
import { checkStatus } from "./http-body.ts";
import { type HttpClient, type HttpTarget, MEDIA_TYPE } from "./http-client.ts";
import { QuicQuestions, type QuicServer, quicServer } from "./quic-client.ts";
import type { UpstreamEnv } from "./upstream.ts";

const HTTP3 = { alpn: HTTP3_ALPN, noError: NO_ERROR, cancelled: REQUEST_CANCELLED };

/** Throws `DialError`; nothing is left open then. */
export type OpenHttp3 = (signal: AbortSignal) => Promise<HttpClient>;

/** `startsEarly`: as of `QuicServer`. */
export function http3Opener(
  target: HttpTarget,
  server: NameserverOptions,
  env: UpstreamEnv,
  startsEarly: boolean,
): OpenHttp3 {
  const to = quicServer(server, env, HTTP3, startsEarly);
  return (signal) => openHttp3(target, to, signal);
}

async function openHttp3(target: HttpTarget, to: QuicServer, signal: AbortSignal): Promise<HttpClient> {
  const questions = await QuicQuestions.open(to, signal);
  openControlStream(questions.connection);
  const { authority, authorization, text } = target;
  return {
    async get(path, waiting) {
      const { status, body } = await questions.ask(async (stream) => {
        stream.end(
          encodeHeaders([
            [":method", "GET"],
            [":scheme", "https"],
            [":authority", authority],
            [":path", path],
            ["accept", MEDIA_TYPE],
            ...(authorization === null ? [] : [["authorization", authorization] as const]),
          ]),
        );
        return readResponse(stream, MAX_MESSAGE_BYTES);
      }, waiting);
      checkStatus(status, text);
      return body;
    },
    retire: () => questions.retire(),
    close: () => questions.close(),
  };
}
