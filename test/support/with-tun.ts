/**
 * `node with-tun.ts <device> <descriptor> <address …> -- <command …>`: opens and sets up a TUN as a supervisor that starts a program
 * with `file-descriptor` does, and becomes that program, which finds the device under the number.
 */
import { execFileSync } from "node:child_process";
import { ffiFor } from "#platform/ffi.ts";

const split = process.argv.indexOf("--");
const [device = "", descriptor, ...addresses] = process.argv.slice(2, split);
const [program = "", ...rest] = process.argv.slice(split + 1);

const O_RDWR = 2;
const TUNSETIFF = 0x400454ca;
const IFF_TUN_NO_PI = 0x1001;
const { functions } = ffiFor("this test").dlopen(null, {
  open: { arguments: ["pointer", "i32"], return: "i32" },
  ioctl: { arguments: ["i32", "u32", "pointer"], return: "i32" },
  dup2: { arguments: ["i32", "i32"], return: "i32" },
  close: { arguments: ["i32"], return: "i32" },
});
const fd = functions.open(Buffer.from("/dev/net/tun\0"), O_RDWR);
const request = Buffer.alloc(40);
request.write(device);
request.writeUInt16LE(IFF_TUN_NO_PI, 16);
if (fd < 0 || functions.ioctl(fd, TUNSETIFF, request) < 0) throw new Error(`no TUN ${device}`);
if (functions.dup2(fd, Number(descriptor)) < 0) throw new Error(`no descriptor ${descriptor}`);
functions.close(fd);
for (const address of addresses) execFileSync("ip", ["address", "add", address, "dev", device]);
execFileSync("ip", ["link", "set", device, "up"]);
process.execve?.(program, [program, ...rest], process.env as Record<string, string>);
throw new Error("this runtime cannot become another program");
