/** Which requests of HTTP/2 open a stream at a listener, and what the others are answered. */
import type { Http2Tunnels, HttpPlace } from "#core/wire-details.ts";
import { gunPaths } from "#transport/grpc/path.ts";
import { padding } from "#transport/xhttp/padding.ts";
import { BODY_FIELDS, judge, PADDING_FIELD } from "#transport/xhttp/stream-one.ts";
import { hostMatches, pathOf } from "#transport/http-head.ts";
import type { Field } from "#transport/http-fields/section.ts";

export type Carrier = "grpc" | "h2" | "xhttp";

export interface TunnelRequest {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly contentType: string;
  readonly referer: string;
}

export interface TunnelAnswer {
  /** The carrier of the stream; null: there is none, and nothing follows the answer. */
  readonly carrier: Carrier | null;
  readonly fields: readonly Field[];
  /** A field beside them that is another one each time. */
  readonly padding?: Field;
}

const GRPC: TunnelAnswer = {
  carrier: "grpc",
  fields: [
    [":status", "200"],
    ["content-type", "application/grpc"],
  ],
};
const H2: TunnelAnswer = {
  carrier: "h2",
  fields: [
    [":status", "200"],
    ["cache-control", "no-store"],
  ],
};
/** As servers of gRPC say that they have no such method. */
const NO_METHOD: TunnelAnswer = { carrier: null, fields: [...GRPC.fields, ["grpc-status", "12"]] };

const NOT_GRPC: TunnelAnswer = { carrier: null, fields: [[":status", "415"]] };
const NOT_THERE: TunnelAnswer = { carrier: null, fields: [[":status", "404"]] };
const TRAILERS: readonly Field[] = [["grpc-status", "0"]];

const STREAM_ONE: readonly Field[] = [[":status", "200"], ...BODY_FIELDS];
const NOT_STREAM_ONE: TunnelAnswer = { carrier: null, fields: [[":status", "400"]] };

/** Lists of fields are the same objects each time. */
export function answerTunnel(
  request: TunnelRequest,
  { grpcServiceName, h2, streamOne }: Http2Tunnels,
): TunnelAnswer {
  if (streamOne !== null) return answerStreamOne(request, streamOne);
  const { path: asked, authority, contentType } = request;
  const path = pathOf(asked);
  if (contentType.startsWith("application/grpc") && grpcServiceName !== null) {
    const { single, multi } = gunPaths(grpcServiceName);
    return path === single || path === multi ? GRPC : NO_METHOD;
  }
  if (h2 !== null && path === pathOf(h2.path) && hostMatches(authority, h2.hosts)) return H2;
  return grpcServiceName !== null && h2 === null ? NOT_GRPC : NOT_THERE;
}

function answerStreamOne(request: TunnelRequest, streamOne: HttpPlace): TunnelAnswer {
  const verdict = judge(request, streamOne);
  if (verdict !== "stream") return verdict === 404 ? NOT_THERE : NOT_STREAM_ONE;
  return { carrier: "xhttp", fields: STREAM_ONE, padding: [PADDING_FIELD, padding()] };
}

/** What ends a stream whose answer went well: null where its end says it. */
export function trailersOf(carrier: Carrier): readonly Field[] | null {
  return carrier === "grpc" ? TRAILERS : null;
}
