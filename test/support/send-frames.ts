/** Runs in a namespace: `node send-frames.ts <device> <MAC> <specs as JSON>` puts frames on the wire as they are. */
import { readFileSync } from "node:fs";
import { openLibc } from "#platform/linux/libc.ts";
import { frame, type FrameSpec } from "./frames.ts";
import { ffiFor } from "#platform/ffi.ts";

const AF_PACKET = 17;
const SOCK_RAW = 3;
const [device = "", mac = "", specs = "[]"] = process.argv.slice(2);

const ffi = ffiFor("this test");
const { functions } = ffi.dlopen(null, {
  sendto: { arguments: ["i32", "pointer", "i32", "i32", "pointer", "i32"], return: "i32" },
});
const fd = openLibc()?.socket(AF_PACKET, SOCK_RAW) ?? -1;
const index = Number(readFileSync(`/sys/class/net/${device}/ifindex`, "latin1"));
const address = Buffer.alloc(20); // sockaddr_ll: FAMILY(2) PROTOCOL(2) INDEX(4) …
address.writeUInt16LE(AF_PACKET, 0);
address.writeInt32LE(index, 4);
for (const spec of JSON.parse(specs) as readonly FrameSpec[]) {
  const bytes = frame(spec);
  bytes.set(Buffer.from(mac.replaceAll(":", ""), "hex"), 0);
  const sent = functions.sendto(fd, bytes, bytes.length, 0, address, address.length);
  if (sent !== bytes.length) throw new Error(`${JSON.stringify(spec)}: ${sent} bytes went out`);
}
