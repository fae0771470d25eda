/** A TUN from one process of weir to the next: what is handed over, and under which names. */
import { createHash } from "node:crypto";
import { ConfigError } from "#core/errors.ts";
import type { HandedState, InheritedSockets, ListeningSocket } from "#net/listen/inherited-sockets.ts";
import type { TunDevice } from "#platform/tun.ts";
import { detailOf } from "./device.ts";
import type { TunListener } from "./listener.ts";
import { encodeNatState } from "./nat-state.ts";
import type { TunSettings } from "./settings.ts";
import type { Stack } from "./stack.ts";

const PREFIX = "tun ";

/** The device of settings that are the same in both processes. */
export function deviceKey(settings: TunSettings): string {
  const digest = createHash("sha256").update(JSON.stringify(settings)).digest("base64");
  return `${PREFIX}${digest} ${settings.name}`;
}

export function isDeviceKey(key: string): boolean {
  return key.startsWith(PREFIX);
}

/** Of a listener behind a TUN; `at`: its place among them. */
export function listenerKey({ name }: TunSettings, at: number): string {
  return `tun-listener ${at} ${name}`;
}

export function flowsKey({ name }: TunSettings, family: 4 | 6): string {
  return `tun-flows ${family} ${name}`;
}

/** Throws `ConfigError` where the TUNs of the process before are others. */
export function demandSame(wanted: readonly TunSettings[], inherited: InheritedSockets): void {
  const keys = inherited.keys.filter(isDeviceKey);
  const strange = wanted.find((settings) => !keys.includes(deviceKey(settings)));
  if (strange === undefined && keys.length === wanted.length) return;
  const which = strange === undefined ? "one that is in force is not in the file" : `that of ${strange.name}`;
  throw new ConfigError(
    `a TUN goes to another process as it is, and the file has changed: ${which}; reload before, or restart`,
  );
}

/** Of what its classifier remembers of open connections. */
export function waysKey({ name }: TunSettings): string {
  return `tun-ways ${name}`;
}

export interface Handled {
  readonly device: TunDevice;
  readonly listeners: readonly TunListener[];
  /** See `KernelBypass.ways`. */
  readonly ways: number | null;
}

/** Descriptors that stay this process's, too. */
export function handles(
  settings: TunSettings,
  { device, listeners, ways }: Handled,
): readonly ListeningSocket[] {
  return [
    ...(ways === null ? [] : [{ key: waysKey(settings), fd: ways, endpoint: null }]),
    { key: deviceKey(settings), fd: device.fd, endpoint: null, detail: detailOf(device) },
    ...listeners.map(({ listening }, at) => ({ key: listenerKey(settings, at), ...listening })),
  ];
}

/** Exact once the device is paused. */
export function statesOf(settings: TunSettings, stack: Stack): readonly HandedState[] {
  const families = [
    [4, stack.inet4],
    [6, stack.inet6],
  ] as const;
  return families.flatMap(([family, own]) =>
    own === null ? [] : [{ key: flowsKey(settings, family), bytes: encodeNatState(own.nat.state) }],
  );
}
