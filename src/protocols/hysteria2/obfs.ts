/** The disguise of a node or a listener. */
import { ConfigError } from "#core/errors.ts";
import type { FilterSpec } from "#transport/quic/remote/messages.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";
import { DEFAULT_SIZES, gecko } from "./gecko.ts";
import { LEAST_PASSWORD_BYTES, salamander } from "./salamander.ts";

/** Sizes of 0: the default. */
export type ObfsOptions = FilterSpec;

/** Null: there is none. Throws `ConfigError`, which names `where`, for a short password and for sizes that do not fit. */
export function openObfs(options: ObfsOptions, where: string): PacketFilter | null {
  const { obfs, "obfs-password": password } = options;
  if (obfs === "") return null;
  if (Buffer.byteLength(password) < LEAST_PASSWORD_BYTES)
    throw new ConfigError(`${where}: obfs-password: ${obfs} needs at least ${LEAST_PASSWORD_BYTES} bytes`);
  if (obfs === "salamander") return salamander(password);
  const least = options["obfs-min-packet-size"] || DEFAULT_SIZES.least;
  const most = options["obfs-max-packet-size"] || DEFAULT_SIZES.most;
  if (least > most)
    throw new ConfigError(
      `${where}: obfs-min-packet-size: ${least} is more than obfs-max-packet-size, ${most}`,
    );
  return gecko(password, { least, most });
}

/** Of a filter, for the thread that makes another one of it. */
export function obfsSpec(options: ObfsOptions): FilterSpec {
  return {
    obfs: options.obfs,
    "obfs-password": options["obfs-password"],
    "obfs-min-packet-size": options["obfs-min-packet-size"],
    "obfs-max-packet-size": options["obfs-max-packet-size"],
  };
}
