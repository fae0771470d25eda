/** Where the weir that runs with a configuration on this machine can be asked. */
import { isAbsolute, join } from "node:path";
import type { Config } from "#config/config.ts";
import { ConfigError } from "#core/errors.ts";
import type { ControllerAddress } from "./controller-request.ts";

/** Throws `ConfigError` where there is no such place; `what` says what that is in the way of. */
export function addressOf(
  { controller }: Config,
  home: string,
  secret: string,
  what: string,
): ControllerAddress {
  const { externalControllerUnix: unix, externalController: tcp } = controller;
  if (unix !== "") return { socketPath: isAbsolute(unix) ? unix : join(home, unix), secret };
  const colon = tcp.lastIndexOf(":");
  const port = Number(tcp.slice(colon + 1));
  const host = tcp.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  if (port > 0 && /^(127\.[\d.]+|localhost|::1)$/.test(host)) return { host, port, secret };
  throw new ConfigError(
    `${what}: it needs external-controller-unix, or external-controller with a port at 127.0.0.1`,
  );
}
