/** Classifier programs at a device's ingress by the older way, the clsact queue (tc-bpf(8), linux/pkt_sched.h). */
import { SystemError } from "#platform/linux/libc.ts";
import {
  attribute32,
  attributeNested,
  attributesBehind,
  attributeText,
  LITTLE_ENDIAN,
  NLM_F_CREATE,
  NLM_F_EXCL,
  readAttributes,
  textOf,
  uint32At,
} from "./message.ts";
import type { NetlinkSocket } from "./socket.ts";

const RTM_NEWQDISC = 36;
const RTM_NEWTFILTER = 44;
const RTM_DELTFILTER = 45;
const RTM_GETTFILTER = 46;
const HEADER_BYTES = 20;
const TCA_KIND = 1;
const TCA_OPTIONS = 2;
const TCA_BPF_FD = 6;
const TCA_BPF_NAME = 7;
const TCA_BPF_FLAGS = 8;
const DIRECT_ACTION = 1;
/** `ffff:` as a handle, `ffff:fff1` as the parent of a clsact queue, `ffff:fff2` as its ingress. */
const CLSACT_HANDLE = 0xffff_0000;
const CLSACT_PARENT = 0xffff_fff1;
const INGRESS = 0xffff_fff2;
/** Priority 1, ETH_P_ALL in network order. */
const FIRST_OF_ALL = (1 << 16) | (LITTLE_ENDIAN ? 0x0300 : 0x0003);

// tcmsg: FAMILY(1) PAD(3) DEVICE(4) HANDLE(4) PARENT(4) INFO(4)
function header(device: number, handle: number, parent: number, info: number): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setInt32(4, device, LITTLE_ENDIAN);
  for (const [at, value] of [handle, parent, info].entries())
    view.setUint32(8 + at * 4, value, LITTLE_ENDIAN);
  return bytes;
}

/** First of all filters, for all protocols. It stays when this process dies: `removeIngressFilters` at the next start. */
export function addIngressFilter(socket: NetlinkSocket, device: number, program: number, name: string): void {
  const create = NLM_F_CREATE | NLM_F_EXCL;
  const queue = [header(device, CLSACT_HANDLE, CLSACT_PARENT, 0), attributeText(TCA_KIND, "clsact")];
  try {
    socket.request(`add clsact to device ${device}`, RTM_NEWQDISC, create, Buffer.concat(queue));
  } catch (error) {
    if (!(error instanceof SystemError) || error.code !== "EEXIST") throw error;
  }
  const options = [
    attribute32(TCA_BPF_FD, program),
    attributeText(TCA_BPF_NAME, name),
    attribute32(TCA_BPF_FLAGS, DIRECT_ACTION),
  ];
  const filter = [
    header(device, 0, INGRESS, FIRST_OF_ALL),
    attributeText(TCA_KIND, "bpf"),
    attributeNested(TCA_OPTIONS, options),
  ];
  socket.request(`add the classifier to device ${device}`, RTM_NEWTFILTER, create, Buffer.concat(filter));
}

/** No such device, no such queue, a kernel without any. */
const ABSENT: ReadonlySet<string> = new Set(["EINVAL", "ENOENT", "ENODEV", "EOPNOTSUPP"]);

/** All of that name. A device without clsact has none. */
export function removeIngressFilters(socket: NetlinkSocket, device: number, name: string): void {
  const own: { readonly handle: number; readonly info: number }[] = [];
  try {
    socket.dump("list filters", RTM_GETTFILTER, header(device, 0, INGRESS, 0), ({ type, payload }) => {
      const options = attributesBehind(payload, HEADER_BYTES, "a filter").get(TCA_OPTIONS);
      if (type !== RTM_NEWTFILTER || options === undefined) return;
      if (textOf(readAttributes(options).get(TCA_BPF_NAME)) !== name) return;
      own.push({ handle: uint32At(payload, 8), info: uint32At(payload, 16) });
    });
  } catch (error) {
    if (error instanceof SystemError && ABSENT.has(error.code)) return;
    throw error;
  }
  for (const { handle, info } of own) {
    const filter = [header(device, handle, INGRESS, info), attributeText(TCA_KIND, "bpf")];
    socket.request(`remove a filter of device ${device}`, RTM_DELTFILTER, 0, Buffer.concat(filter));
  }
}
