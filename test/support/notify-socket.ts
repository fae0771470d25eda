/** The service manager's end of a notification socket. */
import { setTimeout as delay } from "node:timers/promises";
import { openLibc } from "#platform/linux/libc.ts";
import { encodeUnixAddress } from "#platform/linux/notify-socket.ts";
import { ffiFor } from "#platform/ffi.ts";

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const GIVEN_UP_MS = 60_000;

export interface NotifyListener extends Disposable {
  /** The datagram that lies ready, or null. */
  take(): string | null;
  /** The next one that is wanted; fails where none comes, whatever else does. */
  next(isWanted?: (text: string) => boolean): Promise<string>;
}

export function listenForNotifications(path: string): NotifyListener {
  const libc = openLibc();
  if (libc === null) throw new Error("needs node:ffi");
  const { lib, functions } = ffiFor("this test").dlopen(null, {
    bind: { arguments: ["i32", "pointer", "i32"], return: "i32" },
    recv: { arguments: ["i32", "pointer", "i32", "i32"], return: "i32" },
  });
  const address = encodeUnixAddress(path);
  const fd = libc.socket(AF_UNIX, SOCK_DGRAM);
  if (functions.bind(fd, address, address.length) !== 0) throw new Error(`cannot listen at ${path}`);
  const buffer = Buffer.alloc(4096);
  const take = (): string | null => {
    const length = functions.recv(fd, buffer, buffer.length, 0);
    return length < 0 ? null : buffer.toString("utf8", 0, length);
  };
  const listener: NotifyListener & { readonly keepsLoaded: unknown } = {
    keepsLoaded: lib,
    take,
    async next(isWanted = () => true) {
      const received: string[] = [];
      for (const endMs = Date.now() + GIVEN_UP_MS; Date.now() < endMs; await delay(10))
        for (let text = take(); text !== null; text = take()) {
          if (isWanted(text)) return text;
          received.push(text);
        }
      throw new Error(
        `what was wanted was not told, but ${received.length} others: ${received.slice(-5).join(", ")}`,
      );
    },
    [Symbol.dispose]: () => libc.close(fd),
  };
  return listener;
}
