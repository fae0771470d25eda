import { networkInterfaces } from "node:os";
import type { Destination, Endpoint, Ip } from "#core/session.ts";
import { parseIp } from "./ip.ts";

/**
 * Would a dial to `destination` come back to the listener that captured it? Asked of connections whose destination
 * the network says, so that one made straight to the listener's own port does not go round for ever.
 */
export function loopsBack({ ip, port }: Destination, listener: Endpoint): boolean {
  return port === listener.port && ip !== null && isOwn(ip);
}

function isOwn(ip: Ip): boolean {
  if (ip === "::1" || ip === "::" || ip === "0.0.0.0" || ip.startsWith("127.")) return true;
  // Reading the interfaces takes about 0.1 ms, but only what names the listener's port comes this far.
  return Object.values(networkInterfaces()).some((all) =>
    all?.some(({ address }) => parseIp(address) === ip),
  );
}
