/** Which requests of HTTP/2 open a stream at a listener, and what the others are answered. */
import { gunPaths } from "#transport/grpc/path.ts";
import { hostMatches, pathOf } from "#transport/http-head.ts";
import type { Field } from "#transport/http-fields/section.ts";

/** What a listener offers. Plain data: threads have copies. */
export interface Tunnels {
  /** Service name of the gRPC transport; null: not offered. */
  readonly grpcServiceName: string | null;
  /** Path and hosts of the h2 transport (any host where the list is empty); null: not offered. */
  readonly h2: { readonly path: string; readonly hosts: readonly string[] } | null;
}

export interface TunnelRequest {
  readonly path: string;
  readonly authority: string;
  readonly contentType: string;
}

export interface TunnelAnswer {
  /** The carrier of the stream; null: there is none, and nothing follows the answer. */
  readonly carrier: "grpc" | "h2" | null;
  readonly fields: readonly Field[];
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

/** Lists of fields are the same objects each time. */
export function answerTunnel(
  { path: asked, authority, contentType }: TunnelRequest,
  { grpcServiceName, h2 }: Tunnels,
): TunnelAnswer {
  const path = pathOf(asked);
  if (contentType.startsWith("application/grpc") && grpcServiceName !== null) {
    const { single, multi } = gunPaths(grpcServiceName);
    return path === single || path === multi ? GRPC : NO_METHOD;
  }
  if (h2 !== null && path === pathOf(h2.path) && hostMatches(authority, h2.hosts)) return H2;
  return grpcServiceName !== null && h2 === null ? NOT_GRPC : NOT_THERE;
}

/** What ends a stream whose answer went well: null where its end says it. */
export function trailersOf(carrier: "grpc" | "h2"): readonly Field[] | null {
  return carrier === "grpc" ? TRAILERS : null;
}
