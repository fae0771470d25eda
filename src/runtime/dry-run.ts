/**
 * Opens everything that a file configures without touching anything outside, and reports what could not be used: the
 * part of `-t` beyond the file itself.
 */
import type { Config, ListenerConfig } from "#config/config.ts";
import { DialError, messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import { SILENT } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Resolver } from "#core/resolver.ts";
import { makeSelfSigned } from "#transport/tls/self-signed.ts";
import { makeTlsProvider } from "#transport/tls/provider.ts";
import { openAccess } from "./access.ts";
import { withoutUsers } from "./inbounds.ts";
import { reasonOf } from "./inert.ts";

const refuse = () =>
  Promise.reject(new DialError("unsupported", "nothing is dialled while a file is checked"));
const REFUSING: Dialer = { connect: refuse, associate: refuse };
const NO_NAMES: Resolver = {
  lookup: (host) => Promise.reject(new DialError("resolve", `${host} is not looked up`)),
};

const nowhere = () => Promise.resolve([]);
const TLS = makeTlsProvider(() => null); // nothing shakes hands, so the library need not be loaded
const INBOUND_ENV = {
  listenTcp: nowhere,
  listenUdp: nowhere,
  listenTransparentUdp: nowhere,
  accept() {},
  dialer: REFUSING,
  through: () => REFUSING,
  tls: TLS,
  log: SILENT,
  nowMs: Date.now,
};
const OUTBOUND_ENV = { dialer: REFUSING, resolver: NO_NAMES, tls: TLS, log: SILENT, nowMs: Date.now };

/** An item that cannot be opened: in which list of the file it is, and a sentence about it. */
export interface ItemFault {
  readonly list: "proxies" | "listeners";
  readonly name: string;
  readonly what: string;
}

/** The nodes that cannot be opened. */
export async function nodeFaults({ proxies }: Config, files: SafeFiles): Promise<readonly ItemFault[]> {
  const faults: ItemFault[] = [];
  for (const { name, protocol, options, inert } of proxies) {
    if (inert !== null) continue; // the file's warnings say so
    try {
      const node = await protocol?.outbound?.open(options as never, { ...OUTBOUND_ENV, name, files });
      await node?.[Symbol.asyncDispose]();
    } catch (error) {
      const what = `proxy ${name}: ${reasonOf(error, name)}; the node stays and cannot be dialled`;
      faults.push({ list: "proxies", name, what });
    }
  }
  return faults;
}

/** A certificate by ACME may not be there yet: a start makes one that stands in. */
function withStandIn(listener: ListenerConfig): ListenerConfig {
  const { acme = [] }: { readonly acme?: readonly string[] } = listener.options;
  if (acme.length === 0) return listener;
  const { certificate, privateKey } = makeSelfSigned(acme, Date.now());
  return { ...listener, options: { ...listener.options, certificate, "private-key": privateKey } };
}

/** The listeners that cannot be opened, for reasons besides their port. */
export async function listenerFaults(config: Config, files: SafeFiles): Promise<readonly ItemFault[]> {
  const faults: ItemFault[] = [];
  const common = { ...INBOUND_ENV, access: openAccess(config), files };
  const managed = new Set(config.svc?.managedListeners);
  for (const written of config.listeners) {
    const listener = withStandIn(managed.has(written.name) ? withoutUsers(written) : written);
    const { name, protocol, options, ruleList, target, routingMark } = listener;
    try {
      const env = { ...common, name, ruleList, target, routingMark };
      const inbound = await protocol.inbound?.open(options as never, env);
      await inbound?.[Symbol.asyncDispose]();
    } catch (error) {
      const why = messageOf(error).replace(`listener ${name}: `, "");
      const what = `listener ${name}: ${why}; a start leaves it out, a reload is refused`;
      faults.push({ list: "listeners", name, what });
    }
  }
  return faults;
}
