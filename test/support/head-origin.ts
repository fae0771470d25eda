/** An origin of HTTP that is one function. */
import type { Socket } from "node:net";
import { openTcpOrigin } from "./origin.ts";

export const NO_LENGTH = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** An origin that gives each request head (no bodies) to `on` and writes what it answers. */
export function headOrigin(on: (head: string, socket: Socket) => string | Buffer) {
  return openTcpOrigin((socket) => {
    let held = "";
    socket.on("data", (bytes: Buffer) => {
      held += bytes.toString("latin1");
      for (let at = held.indexOf("\r\n\r\n"); at >= 0; at = held.indexOf("\r\n\r\n")) {
        const head = held.slice(0, at + 4);
        held = held.slice(at + 4);
        socket.write(on(head, socket));
      }
    });
    socket.on("end", () => socket.end());
  });
}

/** Of a head, without the empty one at its end. */
export function linesOf(head: string): string[] {
  return head.trimEnd().split("\r\n");
}
