import type { Config, ListenerConfig } from "#config/config.ts";
import type { NodeView, SetupView } from "#core/control.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { managedProtocols } from "#users/views.ts";

/** What is in force of what the file lists. */
export function viewOfConfig({ listeners, proxies, groups, svc, acme }: Config): SetupView {
  const managed = svc?.managedListeners ?? [];
  return {
    listeners: listeners.map(({ name, protocol, hosts, ports }) => ({
      name,
      type: protocol.type,
      hosts,
      ports,
      isListed: !isTopLevel(name),
      isManaged: managed.includes(name),
    })),
    nodes: proxies.map(({ name, type, options, inert }) => ({
      name,
      type,
      server: serverOf(options),
      inert,
    })),
    groups: groups.map(({ name, members }) => ({ name, members })),
    svc: svc === null ? null : { publicBaseUrl: svc.publicBaseUrl, managed },
    hasAcme: acme !== null,
    protocols: managedProtocols(PROTOCOLS),
  };
}

/** Names that no item of `listeners` may have. */
const isTopLevel = (name: ListenerConfig["name"]): boolean => name.startsWith("DEFAULT-");

function serverOf(options: object): NodeView["server"] {
  const { server, port }: { readonly server?: unknown; readonly port?: unknown } = options;
  if (typeof server !== "string" || typeof port !== "number") return "";
  return server.includes(":") ? `[${server}]:${port}` : `${server}:${port}`;
}
