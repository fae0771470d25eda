/**
 * Stands in for the program around a capture: `node tun-stand-in.ts <json>` opens a TUN that sends every datagram and
 * echo request back to where it came from, and a listener that relays redirected TCP by marked sockets. Prints lines;
 * obeys lines from stdin.
 */
import { createServer, Socket, type AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import type { CapturePlan, CaptureOptions, Prefix, TunAddress } from "#core/capture.ts";
import type { Log } from "#core/log.ts";
import type { Ip, IpPrefix } from "#core/session.ts";
import { Guard, openCapture, Ownership, watchDefaultInterface } from "#capture/index.ts";
import { parseCidr } from "#net/address/cidr.ts";
import { bytesOfIp, ipFromBytes } from "#net/address/ip.ts";
import { addAddress, findLink, openNetlink, setLink } from "#platform/netlink.ts";
import { openSockets } from "#platform/portable.ts";
import { openOriginalDestinations } from "#platform/transparent.ts";
import { Nftables, type NftSession } from "#platform/nftables.ts";
import { openPoller } from "#platform/linux/uv-poll.ts";
import { captureOptions } from "./capture-options.ts";
import { ffiFor } from "#platform/ffi.ts";

export interface StandIn {
  readonly options?: Partial<CaptureOptions>;
  readonly inet6?: boolean;
  readonly hijackDns?: boolean;
  readonly routeSet?: readonly string[];
  readonly routeExcludeSet?: readonly string[];
}

const DEVICE = "tun-svc";
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const log: Log = {
  debug() {},
  info: (text) => say(`info ${String(text)}`),
  warning: (text) => say(`warning ${typeof text === "string" ? text : text()}`),
  error: (text) => say(`error ${typeof text === "string" ? text : text()}`),
};

const ffi = ffiFor("this test");
const { functions } = ffi.dlopen(null, {
  open: { arguments: ["pointer", "i32"], return: "i32" },
  ioctl: { arguments: ["i32", "u64", "pointer"], return: "i32" },
  read: { arguments: ["i32", "pointer", "i32"], return: "i32" },
  write: { arguments: ["i32", "pointer", "i32"], return: "i32" },
});

function openTun(): number {
  const O_RDWR_NONBLOCK_CLOEXEC = 2 | 0o4000 | 0o2000000;
  const TUNSETIFF = 0x400454can;
  const fd = functions.open(Buffer.from("/dev/net/tun\0"), O_RDWR_NONBLOCK_CLOEXEC);
  const request = Buffer.alloc(40);
  request.write(DEVICE);
  request.writeUInt16LE(0x1001, 16); // IFF_TUN | IFF_NO_PI
  if (fd < 0 || functions.ioctl(fd, TUNSETIFF, request) < 0) throw new Error("no TUN");
  return fd;
}

/** Swapping the ends leaves the sums of UDP and IP as they are; an echo request becomes an answer. */
function answer(packet: Uint8Array): void {
  const v4 = packet[0] === 0x45;
  const [source, length, header] = v4 ? [12, 4, 20] : [8, 16, 40];
  const protocol = packet[v4 ? 9 : 6];
  const from = packet.slice(source, source + length);
  packet.copyWithin(source, source + length, source + 2 * length);
  packet.set(from, source + length);
  if (protocol === 17) {
    const ports = packet.slice(header, header + 2);
    packet.copyWithin(header, header + 2, header + 4);
    packet.set(ports, header + 2);
  } else if (packet[header] === 8 || packet[header] === 128) {
    const sum = ((packet[header + 2] as number) << 8) | (packet[header + 3] as number);
    const fixed = sum + (v4 ? 0x0800 : -0x0100); // type 8 becomes 0, 128 becomes 129
    const folded = fixed > 0xffff ? (fixed & 0xffff) + 1 : fixed < 0 ? fixed + 0xffff : fixed;
    packet[header] = v4 ? 0 : 129;
    packet[header + 2] = folded >> 8;
    packet[header + 3] = folded & 0xff;
  }
}

function serveTun(fd: number): void {
  const buffer = new Uint8Array(new ArrayBuffer(65_536));
  openPoller()?.watch(fd, () => {
    for (let length; (length = functions.read(fd, buffer, buffer.length)) > 0;) {
      const packet = buffer.subarray(0, length);
      answer(packet);
      functions.write(fd, packet, length);
    }
  });
}

const OUTPUT_MARK = 0x2024;

async function listen(): Promise<number> {
  const destinationOf = openOriginalDestinations();
  const sockets = openSockets({ routingMark: OUTPUT_MARK, interfaceName: "" });
  const server = createServer((client) => {
    const family = client.remoteFamily === "IPv6" && !client.remoteAddress?.startsWith("::ffff:") ? 6 : 4;
    const { _handle: handle } = client as unknown as { _handle: { fd: number } };
    const destination = destinationOf(handle.fd, family);
    client.on("error", () => {});
    if (destination === null || sockets === null) return client.destroy();
    const host = ipFromBytes(destination.address);
    say(`tcp ${host} ${destination.port}`);
    const far = new Socket({
      fd: sockets.tcp(host.includes(":") ? 6 : 4),
      readable: true,
      writable: true,
      manualStart: true,
    } as object);
    far.on("error", () => client.destroy()).connect({ host, port: destination.port });
    client.pipe(far).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, "::", resolve));
  return (server.address() as AddressInfo).port;
}

const prefixes = (texts: readonly string[] | undefined): readonly Prefix[] =>
  (texts ?? []).map((text) => parseCidr(text) as Prefix);
const address = (ip: string, bits: number, next: string): TunAddress => ({
  address: { ip: ip as Ip, bits } satisfies IpPrefix,
  next: next as Ip,
});

const wanted = JSON.parse(process.argv[2] ?? "{}") as StandIn;
const inet4 = address("198.18.0.1", 30, "198.18.0.2");
const inet6 = wanted.inet6 === false ? null : address("fdfe:dcba:9876::1", 126, "fdfe:dcba:9876::2");
const fd = openTun();
const netlink = openNetlink("tun");
const index = findLink(netlink, DEVICE)?.index ?? 0;
setLink(netlink, index, { generateAddresses: false });
setLink(netlink, index, { up: true, transmitQueue: 5000 });
for (const one of [inet4, inet6])
  if (one !== null) addAddress(netlink, index, bytesOfIp(one.address.ip), one.address.bits);
serveTun(fd);

const options = captureOptions({
  ...wanted.options,
  routeAddress: prefixes(wanted.options?.routeAddress as readonly string[] | undefined),
  routeExcludeAddress: prefixes(wanted.options?.routeExcludeAddress as readonly string[] | undefined),
});
const plan: CapturePlan = {
  device: { name: DEVICE, index },
  inet4,
  inet6,
  options,
  fakeRanges: [],
  redirectPort: options.autoRedirect ? await listen() : null,
  routeSet: wanted.routeSet === undefined ? null : prefixes(wanted.routeSet),
  routeExcludeSet: wanted.routeExcludeSet === undefined ? null : prefixes(wanted.routeExcludeSet),
  ipv6: inet6 !== null,
  hijackDns: wanted.hijackDns === true,
};
/** What the capture talks to; those that hold a table can be closed under it. */
class Sessions {
  readonly #nftables = new Nftables();
  #opened: NftSession[] = [];

  async open(key: string): Promise<NftSession> {
    const session = await this.#nftables.open(key);
    this.#opened.push(session);
    return session;
  }

  async lose(): Promise<void> {
    for (const session of this.#opened.splice(0)) await session[Symbol.asyncDispose]();
  }
}

try {
  const nftables = new Sessions();
  const ownership = new Ownership();
  const guard = new Guard(nftables, log, ownership);
  const capture = await openCapture(plan, { nftables, guard, ownership, log });
  const watch = watchDefaultInterface(DEVICE, (now) => say(`default ${now?.name ?? "none"}`), { log });
  say(`ready ${watch.current?.name ?? "none"}`);
  for await (const line of createInterface(process.stdin)) {
    const [command = "", ...rest] = line.split(" ");
    const ips = rest as unknown as readonly Ip[];
    if (command === "add") await capture.directSet?.change([], ips);
    else if (command === "delete") await capture.directSet?.change(ips, []);
    else if (command === "replace") await capture.directSet?.replace(ips);
    else if (command === "sets")
      await capture.updateSets({ route: prefixes(rest), routeExclude: prefixes(rest) });
    else if (command === "lose-session") await nftables.lose();
    else if (command === "stop") {
      await capture[Symbol.asyncDispose]();
      await guard.remove();
      await watch[Symbol.asyncDispose]();
    }
    say(`done ${command}`);
  }
} catch (error) {
  say(`failed ${error instanceof Error ? error.message : String(error)}`);
}
process.exit();
