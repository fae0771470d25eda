/** The disguise of a node or a listener. */
import { ConfigError } from "#core/errors.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";
import { DEFAULT_SIZES, gecko } from "./gecko.ts";
import { LEAST_PASSWORD_BYTES, salamander } from "./salamander.ts";

export interface ObfsOptions {
  readonly obfs: "" | "salamander" | "gecko";
  readonly "obfs-password": string;
  /** 0: the default. */
  readonly "obfs-min-packet-size": number;
  readonly "obfs-max-packet-size": number;
}

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
