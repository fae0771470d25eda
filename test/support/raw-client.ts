/** A client that says exactly the bytes it is told and reads what comes back. */
import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";

export interface RawClient extends Disposable {
  readonly socket: Socket;
  send(bytes: string | Uint8Array): void;
  /** Everything up to and with `mark`. Rejects where the connection ends before. */
  until(mark: string): Promise<string>;
  /** Exactly so many bytes. */
  read(size: number): Promise<Buffer>;
  /** All that is left until the peer ends or resets. */
  rest(): Promise<Buffer>;
}

export async function openRawClient(port: number, host = "127.0.0.1"): Promise<RawClient> {
  const socket = connect({ port, host, allowHalfOpen: true, noDelay: true });
  await once(socket, "connect");
  let held: Buffer = Buffer.alloc(0);
  let ended = false;
  let wake = (): void => {};
  const changed = (end: boolean) => () => {
    ended ||= end;
    wake();
  };
  socket.on("data", (bytes: Buffer) => {
    held = Buffer.concat([held, bytes]);
    wake();
  });
  socket.on("end", changed(true)).on("close", changed(true)).on("error", changed(true));
  async function wait(size: () => number): Promise<Buffer> {
    for (;;) {
      const wanted = size();
      if (wanted >= 0 && held.length >= wanted) {
        const taken = held.subarray(0, wanted);
        held = held.subarray(wanted);
        return taken;
      }
      if (ended) throw new Error(`the connection ended; left: ${JSON.stringify(held.toString("latin1"))}`);
      await new Promise<void>((resolve) => (wake = resolve));
    }
  }
  return {
    socket,
    send: (bytes) => void socket.write(bytes, "latin1" as BufferEncoding),
    until: async (mark) => {
      const bytes = await wait(() => {
        const at = held.indexOf(mark, 0, "latin1");
        return at < 0 ? -1 : at + mark.length;
      });
      return bytes.toString("latin1");
    },
    read: (size) => wait(() => size),
    rest: () => wait(() => (ended ? held.length : -1)),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

/** Says `bytes` and gives back everything until the peer ends. */
export async function say(port: number, bytes: string | Uint8Array): Promise<string> {
  using client = await openRawClient(port);
  client.send(bytes);
  return (await client.rest()).toString("latin1");
}
