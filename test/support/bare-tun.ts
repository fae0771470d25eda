/** A TUN with nothing around it: no capture, no DNS service, nothing that serves its sessions. */
import type { CaptureOptions } from "#core/capture.ts";
import { SILENT } from "#core/log.ts";
import type { Ip } from "#core/session.ts";
import { InheritedSockets } from "#net/listen/inherited-sockets.ts";
import { DEFAULT_KEEP_ALIVE } from "#net/dial/keep-alive.ts";
import type { TunSettings } from "#tun/settings.ts";
import type { TunEnv } from "#tun/tun.ts";

const NOTHING: AsyncDisposable = { async [Symbol.asyncDispose]() {} };

export function bareSettings(device: string, settings: Partial<TunSettings> = {}): TunSettings {
  return {
    name: "test",
    ruleList: null,
    target: null,
    stack: "system",
    device,
    mtu: 1500,
    gso: false,
    fileDescriptor: 0,
    addresses: [
      { ip: "198.18.0.1" as Ip, bits: 30 },
      { ip: "fdfe:dcba:9876::1" as Ip, bits: 126 },
    ],
    dnsHijack: [],
    udpTimeoutMs: 300_000,
    icmpTimeoutMs: 10_000,
    forwardsIcmp: false,
    loopbackAddresses: [],
    capture: { autoRoute: false, autoRedirect: false } as CaptureOptions,
    fakeRanges: [],
    bypass: null,
    detectsInterface: false,
    routeSets: null,
    routeExcludeSets: null,
    ipv6: true,
    ...settings,
  };
}

export const BARE_ENV: TunEnv = {
  accept: () => {},
  dns: () => null,
  onDnsSettled: () => {},
  keepAlive: () => DEFAULT_KEEP_ALIVE,
  log: SILENT,
  decideEcho: async () => "answer",
  socketOptions: () => null,
  openEgress: () => NOTHING,
  openCapture: () => Promise.reject(new Error("there is none")),
  hold: async () => null,
  openBypass: async () => null,
  prefixesOf: () => [],
  inherited: new InheritedSockets(),
  nowMs: () => performance.now(),
};
