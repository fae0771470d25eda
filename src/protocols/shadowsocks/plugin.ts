/** The built-in SIP003 plugins: the layer between the socket and the cipher. Datagrams do not pass through them. */
import type { Duplex } from "node:stream";
import type { OutboundEnv } from "#core/outbound.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { EARLY_DATA_HEADER } from "#transport/websocket/early-data.ts";
import { openHttpUpgradeClient, openWebSocketClient } from "#transport/websocket/client.ts";
import { parseConfiguredPath } from "#transport/http-head.ts";
import { SmuxSession } from "#transport/mux/smux.ts";
import { chooseSecurityClient } from "#transport/security.ts";
import { MuxCodec } from "./mux-codec.ts";
import { obfsHttpClient } from "./obfs-http.ts";
import { obfsTlsClient } from "./obfs-tls.ts";
import type { OutboundOptions, PluginOptions } from "./options.ts";

/** Wraps what `dial` connects, which it may do twice. Throws `DialError` or `ProtocolError`. */
export type Plugin = (dial: () => Promise<Duplex>, signal: AbortSignal) => Promise<Duplex>;

/** Null: none is configured. Throws `ConfigError`. */
export async function openPlugin(options: OutboundOptions, env: OutboundEnv): Promise<Plugin | null> {
  const { plugin, port, server, "plugin-opts": own } = options;
  if (plugin === undefined || own === undefined) return null;
  if (plugin === "obfs") return obfsPlugin(own, port);
  return await webSocketPlugin(own, server, env, plugin === "gost-plugin" ? smuxStream : muxCoolStream);
}

/** simple-obfs; it opens with the first bytes that the cipher writes. */
function obfsPlugin({ mode, host }: PluginOptions, port: number): Plugin {
  const codec = () =>
    mode === "tls" ? obfsTlsClient(host) : obfsHttpClient(port === 80 ? host : `${host}:${port}`);
  return async (dial) => new CodecStream(await dial(), codec());
}

/** One connection over a WebSocket, in the frames of the plugin's multiplexing. */
type OneStream = (carried: Duplex, env: OutboundEnv) => Duplex;

const muxCoolStream: OneStream = (carried) => new CodecStream(carried, new MuxCodec());

/** The session ends with its only stream. */
const smuxStream: OneStream = (carried, { log }) => {
  const session = new SmuxSession(carried, { onStream: null, onClosed: () => carried.destroy(), log });
  const stream = session.open();
  session.retire();
  return stream;
};

/** v2ray-plugin and gost-plugin differ in nothing but how they multiplex. */
async function webSocketPlugin(
  options: PluginOptions,
  server: string,
  env: OutboundEnv,
  oneStream: OneStream,
): Promise<Plugin> {
  const { host, headers, tls, mux, "v2ray-http-upgrade": upgrades } = options;
  const { name, files, log, trust, resolver } = env;
  const fields = tls ? { ...options, tls, alpn: options.alpn ?? ["http/1.1"] } : { ...options, tls };
  const context = {
    node: name,
    server,
    serverName: host,
    bypassable: false,
    files,
    log,
    trust,
    tls: env.tls,
    resolver,
  };
  const security = await chooseSecurityClient(fields, context);
  const { path, earlyDataBytes } = parseConfiguredPath(options.path);
  const common = { path, host, headers };
  const webSocket = { ...common, earlyDataBytes, earlyDataHeader: EARLY_DATA_HEADER };
  const upgrade = { ...common, fastOpen: options["v2ray-http-upgrade-fast-open"] };
  return async (dial, signal) => {
    const { stream } = await security.open(await dial(), signal, dial);
    if (upgrades) return await openHttpUpgradeClient(stream, upgrade, signal);
    const carried = await openWebSocketClient(stream, webSocket, signal);
    return mux ? oneStream(carried, env) : carried;
  };
}
