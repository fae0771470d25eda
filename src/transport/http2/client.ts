import type { OutgoingHttpHeaders } from "node:http2";
import type { Duplex } from "node:stream";
import type { DialContext } from "#core/outbound.ts";
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

/** A tunnel in a gRPC call. The answer is not awaited: servers send it with their first bytes. */
export async function openGrpcStream(
  pool: Http2Pool,
  options: GrpcClientOptions,
  { signal, metadata }: DialContext,
): Promise<Duplex> {
  const stream = await pool.request(
    {
      ":method": "POST",
      ":scheme": options.scheme,
      ":authority": options.authority,
      ":path": gunPaths(options.serviceName).single,
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": options.userAgent,
    },
    signal,
    metadata,
  );
  return new CodecStream(checkStatus(stream), new GunCodec());
}

export interface H2ClientOptions {
  readonly scheme: "http" | "https";
  readonly hosts: readonly string[];
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The request's body is the way up, the answer's body the way down. */
export async function openH2Stream(
  pool: Http2Pool,
  options: H2ClientOptions,
  { signal, metadata }: DialContext,
): Promise<Duplex> {
  const { hosts } = options;
  const headers: OutgoingHttpHeaders = {
    ...options.headers,
    ":method": options.method,
    ":scheme": options.scheme,
    ":authority": itemAt(hosts, Math.floor(Math.random() * hosts.length)),
    ":path": options.path,
  };
  return new CodecStream(checkStatus(await pool.request(headers, signal, metadata)), new PlainCodec());
}
