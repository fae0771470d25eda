/** Opens a connection with an origin through a listener, as each kind of client does. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { pieces, type Order } from "./flow-order.ts";

export type TunnelKind = "connect" | "socks4" | "socks5" | "mixed-socks5" | "mixed-connect" | "tunnel";

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Paused, with everything of the handshake read. */
export async function openTunnel(
  kind: TunnelKind,
  proxyPort: number,
  from: string,
  to: HostPort,
): Promise<Socket> {
  const socket = await open(proxyPort, from);
  const address = to.host.split(".").map(Number);
  const port = [to.port >> 8, to.port & 0xff];
  if (kind === "tunnel") return socket;
  if (kind === "connect" || kind === "mixed-connect") {
    socket.write(`CONNECT ${to.host}:${to.port} HTTP/1.1\r\nHost: ${to.host}:${to.port}\r\n\r\n`);
    await readUntil(socket, (bytes) => bytes.includes("\r\n\r\n"));
  } else if (kind === "socks4") {
    socket.write(Uint8Array.of(4, 1, ...port, ...address, 0));
    await readUntil(socket, (bytes) => bytes.length >= 8);
  } else {
    socket.write(Uint8Array.of(5, 1, 0));
    await readUntil(socket, (bytes) => bytes.length >= 2);
    socket.write(Uint8Array.of(5, 1, 0, 1, ...address, ...port));
    const reply = await readUntil(socket, (bytes) => bytes.length >= 10);
    if (reply[1] !== 0) throw new Error(`the proxy answers ${reply[1]}`);
  }
  return socket;
}

/** A plain request in absolute form. */
export async function postThrough(
  proxyPort: number,
  from: string,
  to: HostPort,
  { device, target, upload, download }: Order,
): Promise<void> {
  const socket = await open(proxyPort, from);
  const closed = once(socket, "close");
  let head = "";
  let arrived = 0;
  socket.on("data", (chunk: Buffer) => {
    const before = head.indexOf("\r\n\r\n");
    if (before < 0) head += chunk.toString("latin1");
    arrived += chunk.length;
  });
  socket.on("end", () => socket.end());
  socket.write(
    `POST http://${to.host}:${to.port}/T/${device}/${target}/${upload}/${download} HTTP/1.1\r\n` +
      `Host: ${to.host}:${to.port}\r\nContent-Length: ${upload}\r\nConnection: close\r\n\r\n`,
  );
  for (const piece of pieces(upload))
    if (!socket.write(piece)) await Promise.race([once(socket, "drain"), closed]);
  await closed;
  const body = arrived - (head.indexOf("\r\n\r\n") + 4);
  if (body !== download) throw new Error(`${body} of ${download} bytes arrived`);
}

async function open(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress, allowHalfOpen: true, noDelay: true });
  await once(socket, "connect");
  socket.on("error", () => {}); // shows as missing bytes
  return socket;
}

async function readUntil(socket: Socket, enough: (bytes: Buffer) => boolean): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let bytes: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk]);
    if (enough(bytes)) resolve(bytes);
  };
  const onClose = (): void => reject(new Error("the proxy hung up"));
  socket.on("data", onData).once("close", onClose).resume();
  try {
    return await promise;
  } finally {
    socket.pause();
    socket.off("data", onData).off("close", onClose);
  }
}
