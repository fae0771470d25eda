/** What v2ray-plugin is in front of a server, without its multiplexing: WebSocket or HTTPUpgrade, in TLS or not. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer } from "node:tls";
import { acceptUpgrade } from "#transport/websocket/server.ts";
import { certificate } from "./tls-sides.ts";

export const PLUGIN_PATH = "/up";

export interface PluginServer extends AsyncDisposable {
  readonly port: number;
}

/** Passes what its clients send on to that port of the loopback, half-closes too. */
export async function openPluginServer(toPort: number, isSecured: boolean): Promise<PluginServer> {
  const onClient = (socket: Socket): void => {
    socket.on("error", () => {});
    acceptUpgrade(socket, { path: PLUGIN_PATH, host: null }).then(
      (carried) => join(carried, connect({ port: toPort, host: "127.0.0.1", allowHalfOpen: true })),
      () => socket.destroy(),
    );
  };
  const keys = { cert: certificate.cert, key: certificate.key };
  const server = isSecured
    ? createTlsServer({ allowHalfOpen: true, ...keys }, onClient)
    : createTcpServer({ allowHalfOpen: true }, onClient);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, "close");
    },
  };
}

function join(carried: Duplex, onward: Duplex): void {
  for (const [one, other] of [
    [carried, onward],
    [onward, carried],
  ] as const) {
    one.on("error", () => other.destroy());
    one.on("close", () => {
      if (!one.readableEnded) other.destroy();
    });
    one.pipe(other);
  }
}
