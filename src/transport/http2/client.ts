import type { Duplex } from "node:stream";
import type { DialContext } from "#core/outbound.ts";
import type { Http2Recipe } from "#core/wire-recipe.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { GunCodec } from "#transport/grpc/codec.ts";
import { gunPaths } from "#transport/grpc/path.ts";
import { PlainCodec } from "./plain-codec.ts";
import { checkStatus } from "./exchanges.ts";
import type { Http2Pool } from "./pool.ts";
import { itemAt } from "#lib/at.ts";

export interface GrpcClientOptions {
  readonly scheme: "http" | "https";
  readonly authority: string;
  readonly serviceName: string;
  readonly userAgent: string;
}

type Fields = Http2Recipe["requests"][0];

/** What opens a tunnel in a gRPC call. */
export function grpcRequest({ scheme, authority, serviceName, userAgent }: GrpcClientOptions): Fields {
  return [
    [":method", "POST"],
    [":scheme", scheme],
    [":authority", authority],
    [":path", gunPaths(serviceName).single],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ["user-agent", userAgent],
  ];
}

/** A tunnel in a gRPC call. The answer is not awaited: servers send it with their first bytes. */
export async function openGrpcStream(
  pool: Http2Pool,
  options: GrpcClientOptions,
  { signal, metadata }: DialContext,
): Promise<Duplex> {
  const stream = await pool.request(Object.fromEntries(grpcRequest(options)), signal, metadata);
  return new CodecStream(checkStatus(stream), new GunCodec());
}

export interface H2ClientOptions {
  readonly scheme: "http" | "https";
  readonly hosts: readonly string[];
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What opens a stream: one for each host, any of which will do. */
export function h2Requests({ scheme, hosts, path, method, headers }: H2ClientOptions): readonly Fields[] {
  return hosts.map((host) => [
    [":method", method],
    [":scheme", scheme],
    [":authority", host],
    [":path", path],
    ...Object.entries(headers),
  ]);
}

/** The request's body is the way up, the answer's body the way down. */
export async function openH2Stream(
  pool: Http2Pool,
  options: H2ClientOptions,
  { signal, metadata }: DialContext,
): Promise<Duplex> {
  const requests = h2Requests(options);
  const request = itemAt(requests, Math.floor(Math.random() * requests.length));
  const headers = Object.fromEntries(request);
  return new CodecStream(checkStatus(await pool.request(headers, signal, metadata)), new PlainCodec());
}
