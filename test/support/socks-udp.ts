/** A SOCKS5 association and where its datagrams go. */
import { once } from "node:events";
import { connect } from "node:net";

const ASSOCIATE = Uint8Array.of(5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0);
const REPLY_BYTES = 12;

export async function openSocksUdp(
  proxyPort: number,
  localAddress: string,
): Promise<{ readonly port: number } & Disposable> {
  const socket = connect({ port: proxyPort, host: "127.0.0.1", localAddress });
  socket.on("error", () => {}); // shows as a missing answer
  socket.write(ASSOCIATE);
  let reply = Buffer.alloc(0);
  while (reply.length < REPLY_BYTES) {
    const [chunk] = (await once(socket, "data")) as [Buffer];
    reply = Buffer.concat([reply, chunk]);
  }
  return { port: reply.readUInt16BE(REPLY_BYTES - 2), [Symbol.dispose]: () => void socket.destroy() };
}
