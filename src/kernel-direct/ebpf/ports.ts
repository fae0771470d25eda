/** The devices that the classifier looks at, and the program's place on each of them. */
import type { Bpf } from "#platform/linux/bpf.ts";
import { SystemError } from "#platform/linux/libc.ts";
import type { Link } from "#platform/linux/netlink/links.ts";
import { addIngressFilter, removeIngressFilters } from "#platform/linux/netlink/traffic-control.ts";
import type { NetlinkSocket } from "#platform/linux/netlink/socket.ts";

/** Of filters that stay when the process dies. */
const FILTER_NAME = "svc-kernel-direct";

/**
 * Sorted, each once; a bridge is replaced by its ports. Throws with the name of a device that is missing or has no
 * Ethernet frames.
 */
export function resolvePorts(names: readonly string[], links: readonly Link[]): readonly Link[] {
  const ports = new Map<number, Link>();
  for (const name of [...new Set(names)].sort()) {
    const link = links.find((each) => each.name === name);
    if (link === undefined) throw new Error(`kernel-direct-ebpf-interfaces: there is no interface ${name}`);
    if (!link.ethernet) throw new Error(`kernel-direct-ebpf-interfaces: ${name} carries no Ethernet frames`);
    const members = links.filter(({ master }) => master === link.index);
    for (const port of members.length > 0 ? members : [link]) ports.set(port.index, port);
  }
  return [...ports.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** What a crashed run left on these devices; only the older way leaves anything. */
export function removeLeftovers(socket: NetlinkSocket, links: Iterable<Link>): void {
  for (const { index } of links) removeIngressFilters(socket, index, FILTER_NAME);
}

/** The program on one port, until disposed of; a second disposal does nothing. */
export function attach(bpf: Bpf, socket: NetlinkSocket, program: number, port: Link): Disposable {
  const undo = new DisposableStack();
  try {
    const link = bpf.attachIngress(program, port.index);
    undo.defer(() => bpf.close(link));
  } catch (error) {
    if (!(error instanceof SystemError) || error.code !== "EINVAL") throw error; // EINVAL: a kernel before 6.6
    addIngressFilter(socket, port.index, program, FILTER_NAME);
    undo.defer(() => removeIngressFilters(socket, port.index, FILTER_NAME));
  }
  return undo;
}
