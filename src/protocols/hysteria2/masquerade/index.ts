/** What visitors without a password see: a folder, another web site, a fixed text, or nothing. */
import { ConfigError } from "#core/errors.ts";
import { Fault } from "#core/fields.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Dialer } from "#core/outbound.ts";
import type { ConnectionEnds } from "#net/listen/accept.ts";
import type { Http3Answer, Http3Request } from "#transport/http3/server.ts";
import { notFound, text } from "./answers.ts";
import { parseDataUrl } from "./fixed.ts";
import { openFolder } from "./folder.ts";
import { openSite } from "./site.ts";

/** Never rejects. */
export type Masquerade = (request: Http3Request, ends: ConnectionEnds) => Promise<Http3Answer>;

export interface MasqueradeEnv {
  readonly where: string;
  readonly files: SafeFiles;
  readonly dialer: Dialer;
}

/** `source` as the schema has checked it. Throws `ConfigError` for a folder that must not be read. */
export function openMasquerade(source: string, { where, files, dialer }: MasqueradeEnv): Masquerade {
  if (source === "") return async () => notFound();
  const url = new URL(source);
  if (url.protocol === "data:") {
    const fixed = parseDataUrl(source);
    if (fixed instanceof Fault) throw new ConfigError(`${where}: masquerade: ${fixed.message}`);
    return async () => text(200, fixed.body, fixed.type);
  }
  if (url.protocol !== "file:") return openSite(url, dialer);
  try {
    return openFolder(files, decodeURIComponent(url.pathname));
  } catch (cause) {
    if (cause instanceof ConfigError)
      throw new ConfigError(`${where}: masquerade: ${cause.message}`, { cause });
    throw cause;
  }
}
