/** `node marked.ts <mark> <host> <port>`: what a program with this mark on its sockets gets back over TCP and UDP. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { Socket } from "node:net";
import { openSockets } from "#platform/portable.ts";

const [mark = "", host = "", port = ""] = process.argv.slice(2);
const family = host.includes(":") ? 6 : 4;
const sockets = openSockets({ routingMark: Number(mark), interfaceName: "" });
if (sockets === null) throw new Error("a mark is needed");

const options = { fd: sockets.tcp(family), readable: true, writable: true, manualStart: true };
const tcp = new Socket(options).connect({ host, port: Number(port) });
tcp.write("marked");
const [echoed] = (await once(tcp, "data", { signal: AbortSignal.timeout(5_000) })) as [Buffer];
console.log(`tcp ${echoed}`);
tcp.destroy();

// A descriptor is taken over within the call.
const udp = createSocket(family === 4 ? "udp4" : "udp6").bind({ fd: sockets.udp(family) });
udp.send("marked", Number(port), host);
const [answer] = (await once(udp, "message", { signal: AbortSignal.timeout(5_000) })) as [Buffer];
console.log(`udp ${answer}`);
udp.close();
