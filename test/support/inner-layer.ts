/** The accepting side of trojan-go's inner layer, in front of a Trojan listener without TLS. */
import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import { createServer } from "node:tls";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { masterKey, methodOf } from "#protocols/shadowsocks/methods.ts";
import { Sip004Codec } from "#protocols/shadowsocks/sip004.ts";

interface Layer {
  readonly method: string;
  readonly password: string;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface Gateway extends AsyncDisposable {
  readonly port: number;
}

/** What comes by TLS and in the layer goes to the port on loopback without either. */
export async function openInnerGateway(port: number, layer: Layer): Promise<Gateway> {
  const method = methodOf(layer.method);
  const master = masterKey(method, layer.password);
  const server = createServer({ cert: layer.cert, key: layer.key, allowHalfOpen: true }, (socket) => {
    const plain = new CodecStream(socket, new Sip004Codec({ method, master, request: Buffer.alloc(0) }));
    const onward = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const ended = (error: Error | null | undefined): void => {
      if (error) for (const stream of [plain, onward]) stream.destroy();
    };
    pipeline(plain, onward, ended);
    pipeline(onward, plain, ended);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, "close");
    },
  };
}
