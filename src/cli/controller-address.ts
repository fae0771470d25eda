/** Where the weir that runs with a configuration on this machine can be asked. */
import { createHash } from "node:crypto";
import { isAbsolute, join } from "node:path";
import type { Config } from "#config/config.ts";
import { ConfigError } from "#core/errors.ts";
import { commandCredential, totpKeyIn } from "#journal/totp.ts";
import type { ControllerAddress, ControllerPlace } from "./controller-request.ts";

/**
 * Throws `ConfigError` where there is no such place, or the file of one-time codes cannot be read; `what` says what that is
 * in the way of.
 */
export function addressOf(config: Config, home: string, secret: string, what: string): ControllerAddress {
  return { ...placeOf(config, home, what), secret: credentialOf(config, home, secret) };
}

/** Who can read the file of the codes needs none: a command that a timer runs has no person to ask. */
function credentialOf({ svc }: Config, home: string, secret: string): string {
  const file = svc?.totpFile ?? null;
  if (file === null) return secret;
  const mark = createHash("sha256").update(secret).digest("base64"); // as `Secret.mark` of the Controller has it
  return commandCredential(totpKeyIn(isAbsolute(file) ? file : join(home, file)), mark);
}

function placeOf({ controller }: Config, home: string, what: string): ControllerPlace {
  const { externalControllerUnix: unix, externalController: tcp } = controller;
  if (unix !== "") return { socketPath: isAbsolute(unix) ? unix : join(home, unix) };
  const colon = tcp.lastIndexOf(":");
  const port = Number(tcp.slice(colon + 1));
  const host = tcp.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  if (port > 0 && /^(127\.[\d.]+|localhost|::1)$/.test(host)) return { host, port };
  throw new ConfigError(
    `${what}: it needs external-controller-unix, or external-controller with a port at 127.0.0.1`,
  );
}
