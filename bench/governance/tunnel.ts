/** What both processes of a measurement need of a flow. */
import { connect, type Socket } from "node:net";

const BLOCK = Buffer.alloc(256 * 1024, 1);
const shared = Buffer.allocUnsafe(256 * 1024);

export interface Way {
  readonly proxyPort: number;
  readonly source: string;
  /** Address and port. */
  readonly target: string;
}

/** Without end. */
export function pour(socket: Socket): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(BLOCK));
  };
  socket.on("drain", more);
  more();
}

/** Open through the proxy. One static buffer: the ends must cost less than what is measured. */
export async function tunnel(
  { proxyPort, source, target }: Way,
  onBytes: (bytes: number) => void,
): Promise<Socket> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let open = false;
  const onread = {
    buffer: shared,
    callback(bytes: number) {
      if (open) onBytes(bytes);
      else {
        open = true; // the answer to CONNECT: the origin says nothing before it is asked
        resolve();
      }
      return true;
    },
  };
  const options = { port: proxyPort, host: "127.0.0.1", localAddress: source, noDelay: true, onread };
  const socket = connect(options);
  socket.on("error", () => {}); // the end of a measurement
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  await promise;
  return socket;
}
