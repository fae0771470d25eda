/** GET /connections is read every second by every open dashboard, so its JSON is written by hand. */
import type { ConnectionView, Control } from "#core/control.ts";
import type { Endpoint } from "#core/session.ts";

export function connectionsJson(control: Control): string {
  const { connections } = control;
  const { uploadBytes, downloadBytes } = connections.totals();
  let list = "";
  for (const entry of connections.entries())
    list += list === "" ? connectionJson(entry) : `,${connectionJson(entry)}`;
  return `{"downloadTotal":${downloadBytes},"uploadTotal":${uploadBytes},"memory":${control.memoryBytes()},"connections":[${list}]}`;
}

function connectionJson(entry: ConnectionView): string {
  const { metadata, rule } = entry;
  return (
    `{"id":${text(metadata.id)},"metadata":${metadataJson(entry)},"upload":${entry.uploadBytes}` +
    `,"download":${entry.downloadBytes},"start":"${startOf(metadata.acceptedAtMs)}"` +
    `,"chains":${reversed(entry.chain)},"providerChains":${reversed(entry.providerChain)}` +
    `,"rule":${text(rule?.apiType ?? "")},"rulePayload":${text(rule?.payload ?? "")}}`
  );
}

function metadataJson(entry: ConnectionView): string {
  const { network, inbound, source, destination, dscp } = entry.metadata;
  const { process } = entry;
  return (
    `{"network":"${network}","type":${text(inbound.type)},${endpointJson("source", source)}` +
    `,"destinationIP":${text(entry.destinationIp ?? destination.ip ?? "")},"destinationPort":"${destination.port}"` +
    `,"sourceGeoIP":${JSON.stringify(entry.sourceGeoIp)},"destinationGeoIP":${JSON.stringify(entry.destinationGeoIp)}` +
    `,"sourceIPASN":${text(entry.sourceAsn)},"destinationIPASN":${text(entry.destinationAsn)}` +
    `,${endpointJson("inbound", inbound.local)},"inboundName":${text(inbound.name)}` +
    `,"inboundUser":${text(inbound.user ?? "")},"rematchName":"","host":${text(destination.host ?? "")}` +
    `,"dnsMode":"${entry.dnsMode}","uid":${process?.uid ?? 0},"process":${text(process?.name ?? "")}` +
    `,"processPath":${text(process?.path ?? "")},"specialProxy":${text(inbound.target ?? "")}` +
    `,"specialRules":${text(inbound.ruleList ?? "")},"remoteDestination":${text(entry.remoteHost)}` +
    `,"dscp":${dscp ?? 0},"sniffHost":${text(entry.sniffedHost)}}`
  );
}

/** Ports are text: dashboards compare them with "443". */
function endpointJson(prefix: string, { ip, port }: Endpoint): string {
  return `"${prefix}IP":${text(ip)},"${prefix}Port":"${port}"`;
}

/** RFC 3339 with an offset, as the reference prints it. */
function startOf(atMs: number): string {
  return new Date(atMs).toISOString().replace("Z", "+00:00");
}

/** The leaf comes first here. */
function reversed(names: readonly string[]): string {
  let list = "";
  for (let at = names.length - 1; at >= 0; at--)
    list += list === "" ? text(names[at] as string) : `,${text(names[at] as string)}`;
  return `[${list}]`;
}

/** Nothing here needs an escape: by far the most common case, and three times as fast to write. */
const HARMLESS = /^[ !#-[\]-~]*$/;

function text(value: string): string {
  return HARMLESS.test(value) ? `"${value}"` : JSON.stringify(value);
}
