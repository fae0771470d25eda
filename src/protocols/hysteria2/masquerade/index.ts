/** What visitors without a password see: a folder, another web site, a fixed text, or nothing. */
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Dialer } from "#core/outbound.ts";
import type { ConnectionEnds } from "#net/listen/accept.ts";
import type { Http3Answer, Http3Request } from "#transport/http3/server.ts";
import { notFound, text } from "./answers.ts";
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
export async function openMasquerade(
  source: string,
  { where, files, dialer }: MasqueradeEnv,
): Promise<Masquerade> {
  if (source === "") return async () => notFound();
  const url = new URL(source);
  if (url.protocol === "data:") return fixed(source);
  if (url.protocol !== "file:") return openSite(url, dialer);
  try {
    return openFolder(files, decodeURIComponent(url.pathname));
  } catch (cause) {
    if (cause instanceof ConfigError)
      throw new ConfigError(`${where}: masquerade: ${cause.message}`, { cause });
    throw cause;
  }
}

/** The text of a data URL (RFC 2397), which the schema has read before. */
async function fixed(source: string): Promise<Masquerade> {
  const content = await fetch(source);
  const body = Buffer.from(await content.arrayBuffer());
  const type = content.headers.get("content-type") ?? "text/plain;charset=US-ASCII";
  return async () => text(200, body, type);
}
