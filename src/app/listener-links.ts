import { X509Certificate } from "node:crypto";
import type { Config, ListenerConfig } from "#config/config.ts";
import type { SafeFiles } from "#core/files.ts";
import { renderLink } from "#protocols/share-links/index.ts";

export interface LinkEnv extends Pick<Config, "accounts"> {
  readonly files: Pick<SafeFiles, "readPem">;
  /** How clients reach this machine; asked for only where the listener has clients. */
  serverOf(listener: ListenerConfig): string;
}

/**
 * Share links for the clients of a listener, one a user and port; empty where it has none. Throws `UnusableError` where a
 * client that knows its link alone would not agree with the listener.
 */
export async function linksOfListener(listener: ListenerConfig, env: LinkEnv): Promise<readonly string[]> {
  const { name, protocol, options, ports } = listener;
  const serverName = await certificateName(listener, env);
  const nodesAt = (server: string, port: number) =>
    protocol.listenerNodes?.(options, { name, server, port, serverName, accounts: env.accounts }) ?? [];
  return ports
    .filter((port) => nodesAt("", port).length > 0)
    .flatMap((port) => nodesAt(env.serverOf(listener), port))
    .flatMap((node) => renderLink(node) ?? []);
}

/** The first DNS name in the certificate; null where there is none to read. */
async function certificateName({ options }: ListenerConfig, { files }: LinkEnv): Promise<string | null> {
  const { certificate }: { readonly certificate?: string } = options;
  if (certificate === undefined || certificate === "") return null;
  const { subjectAltName = "" } = new X509Certificate(await files.readPem(certificate));
  return /DNS:([^,\s]+)/.exec(subjectAltName)?.[1] ?? null;
}
