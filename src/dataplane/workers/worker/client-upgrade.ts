import { decodeHead } from "#transport/http-head.ts";
import { readUpgrade, type UpgradeRequest } from "#transport/websocket/server.ts";

/** What a client asks for over HTTP/1.1, and how long its request is. */
interface AskedSwitch extends Omit<UpgradeRequest, "early"> {
  readonly size: number;
}

/**
 * `wait`: the request is not whole. `other`: it is not for a worker to answer, or has payload inside. `bytes`: as far as they have
 * come.
 */
export function readSwitch(bytes: Buffer, path: string): AskedSwitch | "wait" | "other" {
  try {
    const head = decodeHead(bytes, 0);
    if (head === null) return "wait";
    const { early, ...asked } = readUpgrade(head.value, { path, host: null });
    return early === null ? { ...asked, size: head.size } : "other";
  } catch {
    return "other"; // whatever it is, the event loop answers it
  }
}
