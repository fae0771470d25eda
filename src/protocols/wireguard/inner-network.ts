/** The network behind a tunnel: a TUN with the node's addresses in a network of this process alone, where its sockets are made. */
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { addAddress, addRoute, MAIN_TABLE, openNetlink, setLink } from "#platform/netlink.ts";
import { openOwnNetwork, type OwnNetwork } from "#platform/own-network.ts";
import { openSockets } from "#platform/portable.ts";
import type { SocketMaker } from "#platform/socket-maker.ts";
import { openTunDevices, type TunDevice, type TunDevices } from "#platform/tun.ts";

const KEY = "wireguard";
const DEVICE = "wg0";
/** What a burst of the program's own connections may leave waiting. */
const QUEUE_PACKETS = 10_000;

export interface InnerSettings {
  readonly mtuBytes: number;
  /** Of the node itself. */
  readonly addresses: readonly Cidr[];
  /** What the peers carry. */
  readonly routes: readonly Cidr[];
}

export interface InnerNetwork extends Disposable {
  readonly device: TunDevice;
  /** What they make leaves by the tunnel, and by nothing else. */
  readonly sockets: SocketMaker;
}

/** Their watch of descriptors is one for all. */
let devices: TunDevices | undefined;
const tunDevices = (): TunDevices => (devices ??= openTunDevices(KEY));

/** Throws `ConfigError` where this system, or this user, cannot. */
export function openInnerNetwork(settings: InnerSettings): InnerNetwork {
  const network = openOwnNetwork(KEY);
  try {
    return network.within(() => setUp(network, settings));
  } catch (error) {
    network[Symbol.dispose]();
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`${KEY}: ${messageOf(error)}`, { cause: error });
  }
}

function setUp(network: OwnNetwork, { mtuBytes, addresses, routes }: InnerSettings): InnerNetwork {
  using undo = new DisposableStack();
  const device = undo.use(tunDevices().open({ name: DEVICE, offload: false, fileDescriptor: 0 }));
  using netlink = openNetlink(KEY);
  setLink(netlink, device.index, { mtuBytes, transmitQueue: QUEUE_PACKETS });
  try {
    setLink(netlink, device.index, { generateAddresses: false });
  } catch {
    // Without IPv6 there are no addresses to generate.
  }
  for (const { bytes, bits } of addresses) addAddress(netlink, device.index, bytes, bits);
  setLink(netlink, device.index, { up: true });
  const has = (bytes: Uint8Array) => addresses.some((address) => address.bytes.length === bytes.length);
  for (const destination of routes)
    if (has(destination.bytes))
      addRoute(netlink, destination.bytes.length === 4 ? 4 : 6, MAIN_TABLE, destination, device.index);
  const made = openSockets({ routingMark: 0, interfaceName: DEVICE });
  if (made === null) throw new Error("there are no sockets for a device");
  const owned = undo.move();
  return {
    device,
    sockets: {
      tcp: (family) => network.within(() => made.tcp(family)),
      udp: (family) => network.within(() => made.udp(family)),
      discard: (fd) => made.discard(fd),
    },
    [Symbol.dispose]() {
      owned.dispose();
      network[Symbol.dispose]();
    },
  };
}
