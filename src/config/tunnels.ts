/** `tunnels`: fixed forwards, as text `network,address,target[,proxy]` or as a map. */
import { list, maybe, name, noneOf, Plain, scalar, show, text, Unsupported } from "#core/fields.ts";
import type { Network, Ip } from "#core/session.ts";
import { parseHostPort } from "#net/address/address-fields.ts";
import { ANY_V4, parseIp } from "#net/address/ip.ts";
import * as z from "zod";
import type { Context, Issue } from "./context.ts";
import { issueText, reportIssues } from "./items.ts";
import type { Path } from "./report.ts";
import { isMapValue } from "./shape.ts";

export interface TunnelConfig {
  readonly networks: readonly Network[];
  readonly listen: { readonly ip: Ip; readonly port: number };
  readonly target: { readonly host: string; readonly port: number };
  readonly proxy: string | null;
}

const NETWORKS: readonly Network[] = ["tcp", "udp"];

const NETWORK_WORDS = ["tcp", "udp", "tcp/udp", "udp/tcp"];

const network = () =>
  scalar({ type: "string", enum: NETWORK_WORDS }, (source, raw) => {
    const words = source.toLowerCase().split("/");
    const networks = NETWORKS.filter((word) => words.includes(word));
    if (networks.length === words.length && networks.length > 0) return networks;
    return noneOf(NETWORK_WORDS, source, raw);
  });

const listenAddress = () =>
  scalar({ type: "string" }, (source, raw) => {
    const parsed = parseHostPort(source);
    const ip = parsed === null ? null : parsed.host === "" ? ANY_V4 : parseIp(parsed.host);
    if (parsed !== null && ip !== null) return { ip, port: parsed.port };
    return new Unsupported(`expected address:port such as 127.0.0.1:6553, got ${show(raw)}`);
  });

const targetAddress = () =>
  scalar({ type: "string" }, (source, raw) => {
    const parsed = parseHostPort(source);
    if (parsed !== null && parsed.host !== "" && parsed.port > 0) return parsed;
    return new Unsupported(`expected host:port such as 8.8.8.8:53, got ${show(raw)}`);
  });

export const tunnelFields = z.object({
  network: list(network()),
  address: listenAddress(),
  target: targetAddress(),
  proxy: maybe(name()),
});

export function readTunnels(
  context: Context,
  items: readonly unknown[],
  outbounds: ReadonlySet<string>,
): readonly TunnelConfig[] {
  const tunnels: TunnelConfig[] = [];
  for (const [at, item] of items.entries()) {
    const path: Path = ["tunnels", at];
    const prefix = `tunnel ${at}`;
    const fields = isMapValue(item) ? item : splitLine(context, item, path, prefix);
    if (fields === null) continue;
    const read = context.read(tunnelFields, fields, path, {
      match: "case",
      explain: (issues) => explain(context, issues, path, prefix),
    });
    if (read === null) continue;
    if (read.proxy !== null && !outbounds.has(read.proxy)) {
      const message = `tunnel proxy ${read.proxy} not found${context.report.suggest(read.proxy, outbounds)}`;
      context.report.error([...path, "proxy"], message);
    }
    const networks = new Set(read.network.flat());
    tunnels.push({
      networks: NETWORKS.filter((word) => networks.has(word)),
      listen: read.address,
      target: read.target,
      proxy: read.proxy,
    });
  }
  return tunnels;
}

/** An address that is none costs its tunnel. */
function explain(context: Context, issues: readonly Issue[], path: Path, prefix: string): void {
  const wrong = issues.filter(({ unsupported, missing }) => !unsupported && !missing);
  reportIssues(context, wrong, path, prefix);
  for (const issue of issues)
    if (wrong.length === 0)
      context.report.warning(
        [...path, ...issue.path],
        `${prefix}: ${issueText(issue)}; the tunnel is left out`,
      );
}

function splitLine(context: Context, item: unknown, path: Path, prefix: string): object | null {
  const line = item instanceof Plain ? item.source : item;
  const parts = typeof line === "string" ? line.split(",").map((part) => part.trim()) : [];
  if (parts.length === 3 || parts.length === 4) {
    const [networks, address, target, proxy] = parts as [string, string, string, string | undefined];
    return { network: networks, address, target, ...(proxy === undefined ? {} : { proxy }) };
  }
  const message = `${prefix}: expected network,address,target[,proxy], got ${show(item)}`;
  if (line === "") context.report.warning(path, `${message}; the tunnel is left out`);
  else context.report.error(path, message);
  return null;
}

/** What a schema of the whole file says of an item. */
export const tunnelItem = z.union([tunnelFields, text()]);
