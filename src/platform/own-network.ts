/** Networks of this process alone. On a system without them the error names the configuration key. */
import { ConfigError, messageOf } from "#core/errors.ts";
import { SystemError } from "./linux/libc.ts";
import { OwnNetwork } from "./linux/own-network.ts";
import { ffiFor } from "./ffi.ts";

export type { OwnNetwork } from "./linux/own-network.ts";

/** `key` is what needs it. Throws `ConfigError`. */
export function openOwnNetwork(key: string): OwnNetwork {
  try {
    return new OwnNetwork(ffiFor(key));
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const isRight = error instanceof SystemError && error.code === "EPERM";
    const hint = isRight ? " (needs root, or CAP_SYS_ADMIN and CAP_NET_ADMIN)" : "";
    throw new ConfigError(`${key}: no network of its own: ${messageOf(error)}${hint}`, { cause: error });
  }
}
