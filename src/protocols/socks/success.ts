/** What clients are answered when they are connected. */
import type { Endpoint } from "#core/session.ts";
import * as wire from "./wire.ts";

export const SOCKS4_SUCCESS = wire.encodeReply4(90);

/** `local`: the listening side's own address. */
export function socks5Success(local: Endpoint): Buffer {
  return wire.encodeReply(0, { host: null, ...local });
}
