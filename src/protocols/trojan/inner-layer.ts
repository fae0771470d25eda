/** The inner layer of trojan-go (https://p4gefau1t.github.io/trojan-go/advance/aead/): a stream of Shadowsocks around Trojan's bytes, inside TLS. */
import type { Duplex } from "node:stream";
import { openStream } from "#net/stream/departing-stream.ts";
import { saltsOfServers } from "#protocols/shadowsocks/memory.ts";
import { masterKey } from "#protocols/shadowsocks/methods.ts";
import { Sip004Codec } from "#protocols/shadowsocks/sip004.ts";
import { OPEN_AFTER_MS } from "./begin.ts";
import { innerMethod, type OutboundOptions } from "./options.ts";

/** Puts Trojan's request, and what follows it, into the layer. */
export type InnerLayer = (below: Duplex, request: Buffer) => Duplex;

/** Null: there is none. */
export function openInnerLayer(options: OutboundOptions["ss-opts"]): InnerLayer | null {
  if (options?.enabled !== true) return null;
  const method = innerMethod(options.method);
  if (method === null) return null; // the schema has refused it
  const master = masterKey(method, options.password);
  return (below, request) => {
    const codec = new Sip004Codec({ method, master, request, salts: saltsOfServers() });
    return openStream(below, codec, { openAfterMs: OPEN_AFTER_MS });
  };
}
