/** The release folder of a configuration, for commands that run beside weir. */
import type { Config } from "#config/config.ts";
import type { SafeFiles } from "#core/files.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { SYSTEM_RESOLVER } from "#net/dial/system-resolver.ts";
import { openTrust } from "#net/dial/trust.ts";
import type { ReleaseSource } from "#update/release-source.ts";
import { openReleaseSource } from "#update/settings.ts";
import { UpdateError } from "#update/update-error.ts";
import { VERSION } from "#version.ts";

/** Rejects with `UpdateError` where there is no block `update`, or a proxy of it is meant that commands do not have. */
export async function commandSource(
  { update, tls, general }: Config,
  files: SafeFiles,
  isDirect: boolean,
): Promise<ReleaseSource> {
  const { proxy = "" } = update ?? {};
  if (proxy !== "" && proxy !== "DIRECT" && !isDirect)
    throw new UpdateError(
      `update.proxy is ${proxy}, which the weir that runs knows and this command does not: POST /upgrade with update.by-controller, or weir update -direct`,
    );
  const trust = await openTrust(tls.customCertifactes, files, "tls.custom-certifactes");
  const { interfaceName, routingMark, ipv6, tcpConcurrent } = general;
  const dialer = openDirectDialer({
    resolver: SYSTEM_RESOLVER,
    interfaceName,
    routingMark,
    ipv6,
    tcpConcurrent,
  });
  return await openReleaseSource(update, files, { dialer, trust, userAgent: `weir/${VERSION}` });
}
