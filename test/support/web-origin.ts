/** Web servers at the far end of a test; port 0. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createSecure } from "node:https";
import type { AddressInfo } from "node:net";

export interface WebOrigin extends AsyncDisposable {
  readonly port: number;
  /** `http://127.0.0.1:8080`, nothing behind the port. */
  readonly url: string;
}

export interface WebOptions {
  readonly host?: string;
  /** For HTTPS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

export async function openWebOrigin(
  on: RequestListener,
  { host = "127.0.0.1", tls }: WebOptions = {},
): Promise<WebOrigin> {
  const server = tls === undefined ? createServer(on) : createSecure({ cert: tls.cert, key: tls.key }, on);
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
