/** Configurations that are like another one but for a few keys. */
import type { Config } from "#config/config.ts";
import { PORT_LISTENERS } from "#config/sections/general.ts";

const PORT_NAMES: ReadonlySet<string> = new Set(PORT_LISTENERS.map(({ name }) => name));

/** `next`, with the ports, LAN keys and Controller of `current`: what a reload without `force` leaves alone. */
export function keepPorts(next: Config, current: Config): Config {
  const { port, socksPort, mixedPort, redirPort, tproxyPort, allowLan, bindAddress } = current.general;
  const ofPorts = ({ name }: { readonly name: string }) => PORT_NAMES.has(name);
  return {
    ...next,
    general: { ...next.general, port, socksPort, mixedPort, redirPort, tproxyPort, allowLan, bindAddress },
    skipAuthPrefixes: current.skipAuthPrefixes,
    lanAllowedIps: current.lanAllowedIps,
    lanDisallowedIps: current.lanDisallowedIps,
    listeners: [
      ...current.listeners.filter(ofPorts),
      ...next.listeners.filter((listener) => !ofPorts(listener)),
    ],
    controller: current.controller,
    tls: current.tls,
  };
}
