/** The errors of TLS connections that the runtime's own libssl speaks on a descriptor. */
import { getSystemErrorName } from "node:util";

export function cutOff(): Error {
  return Object.assign(new Error("the TLS connection was cut off"), { code: "ECONNRESET" });
}

/** Of a system call; `errno` is negative. */
export function systemFailure(call: string, errno: number): Error {
  const code = getSystemErrorName(errno);
  return Object.assign(new Error(`${call}: ${code}`), { code });
}
