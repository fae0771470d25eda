/** SIP003 plugins that we are ourselves: what stands between the socket and the cipher. */
import type { Duplex } from "node:stream";
import { CodecStream } from "#net/codec-stream.ts";
import { obfsHttpClient } from "./obfs-http.ts";
import { obfsTlsClient } from "./obfs-tls.ts";
import type { PluginOptions } from "./options.ts";

/** Wraps a connected stream, which it owns from here. */
export type Plugin = (stream: Duplex, signal: AbortSignal) => Promise<Duplex>;

/** simple-obfs; it opens with the first bytes that the cipher writes. */
export function obfsPlugin({ mode, host }: PluginOptions, port: number): Plugin {
  const name = host ?? "bing.com";
  return (stream) =>
    Promise.resolve(
      new CodecStream(
        stream,
        mode === "tls" ? obfsTlsClient(name) : obfsHttpClient(port === 80 ? name : `${name}:${port}`),
      ),
    );
}
