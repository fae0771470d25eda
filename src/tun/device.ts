/** The device under a TUN inbound: opened under a free name, with its addresses, up. */
import type { Log } from "#core/log.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { ListeningSocket } from "#net/listen/inherited-sockets.ts";
import {
  addAddress,
  loosenReversePath,
  openNetlink,
  setLink,
  type NetlinkSocket,
} from "#platform/netlink.ts";
import { isNameTaken, openTunDevices, type TunDevice, type TunDevices } from "#platform/tun.ts";
import { LEAST_MTU } from "#net/packet/packet.ts";
import type { TunSettings } from "./settings.ts";

const CUTS_DATAGRAMS = "cuts datagrams";
const DEFAULT_NAME = "Meta";
/** The kernel's limit without the closing zero (IFNAMSIZ). */
const MOST_NAME_BYTES = 15;
const DEFAULT_MTU = 9000;
/** At 1,000 packets a pause of the collector loses traffic. */
const QUEUE_PACKETS = 10_000;

export function mtuOf({ mtu }: Pick<TunSettings, "mtu">): number {
  return mtu === 0 ? DEFAULT_MTU : Math.max(LEAST_MTU, mtu);
}

/** One that another process of weir has set up by the same settings; the descriptor is owned from here on. Throws `ConfigError`. */
export function adoptDevice({ fd, detail }: Pick<ListeningSocket, "fd" | "detail">): TunDevice {
  const known = { cutsDatagrams: detail === CUTS_DATAGRAMS };
  return openTunDevices("tun.enable").open({ name: "", offload: false, fileDescriptor: fd, known });
}

/** What `adoptDevice` is to be told of a device. */
export function detailOf({ cutsDatagrams }: TunDevice): string | null {
  return cutsDatagrams ? CUTS_DATAGRAMS : null;
}

/** Throws `ConfigError` naming the key. The device goes when it is closed. */
export function openDevice(settings: TunSettings, log: Log): TunDevice {
  const devices = openTunDevices("tun.enable");
  if (Buffer.byteLength(settings.device) > MOST_NAME_BYTES)
    throw new ConfigError(`tun.device ${settings.device}: a name has at most ${MOST_NAME_BYTES} bytes`);
  const device = openNamed(devices, settings);
  try {
    if (settings.fileDescriptor === 0) setUp(device, settings, log);
    return device;
  } catch (error) {
    device.close();
    throw error instanceof ConfigError
      ? error
      : new ConfigError(`tun: cannot set up ${device.name}: ${messageOf(error)}`, { cause: error });
  }
}

function openNamed(devices: TunDevices, { device, gso, fileDescriptor }: TunSettings): TunDevice {
  const open = (name: string) => devices.open({ name, offload: gso, fileDescriptor });
  try {
    if (device !== "" || fileDescriptor > 0) return open(device);
    try {
      return open(DEFAULT_NAME);
    } catch (error) {
      if (!isNameTaken(error)) throw error;
      return open(`${DEFAULT_NAME}%d`);
    }
  } catch (error) {
    const key = fileDescriptor > 0 ? `tun.file-descriptor ${fileDescriptor}` : "tun.enable";
    const taken = isNameTaken(error) && device !== "" ? `; is there a device ${device} already?` : "";
    const text = `${key}: ${messageOf(error)}${taken} (needs /dev/net/tun and CAP_NET_ADMIN)`;
    throw new ConfigError(text, { cause: error });
  }
}

function setUp(device: TunDevice, settings: TunSettings, log: Log): void {
  using socket = openNetlink("tun.enable");
  const { index, name } = device;
  quietly(() => setLink(socket, index, { generateAddresses: false }));
  setLink(socket, index, { mtuBytes: mtuOf(settings), transmitQueue: QUEUE_PACKETS });
  try {
    loosenReversePath(name);
  } catch (error) {
    log.warning(() => `[TUN] rp_filter of ${name} cannot be changed: ${messageOf(error)}`);
  }
  for (const address of settings.addresses) add(socket, index, address);
  setLink(socket, index, { up: true });
}

function add(socket: NetlinkSocket, index: number, { ip, bits }: TunSettings["addresses"][number]): void {
  try {
    addAddress(socket, index, bytesOfIp(ip), bits);
  } catch (error) {
    const key = ip.includes(":") ? "inet6-address" : "inet4-address";
    throw new ConfigError(`tun.${key} ${ip}/${bits}: ${messageOf(error)}`, { cause: error });
  }
}

/** For what some kernels refuse and nothing depends on. */
function quietly(work: () => void): void {
  try {
    work();
  } catch {
    // Without IPv6 there are no addresses to generate.
  }
}
