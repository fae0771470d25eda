/** Runs in the origin's namespace: prints each source, sends back what comes, answers DNS questions. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { createServer } from "node:net";
import { decode, encode } from "dns-packet";

const web = createHttp(({ socket }, response) => response.end(`hello to ${socket.localAddress}`)).listen(
  80,
  "::",
);
const echo = createServer((socket) => socket.on("error", () => {}).pipe(socket)).listen(7, "::");
await Promise.all([once(web, "listening"), once(echo, "listening")]);
for (const [type, address] of [
  ["udp4", "0.0.0.0"],
  ["udp6", "::"],
] as const) {
  for (const port of [7, 9]) {
    const socket = createSocket({ type, ipv6Only: type === "udp6" });
    socket.on("message", (payload, from) => socket.send([`${port}:`, payload], from.port, from.address));
    socket.bind(port, address);
    await once(socket, "listening");
  }
  const unknownClient = createSocket({ type, ipv6Only: type === "udp6" });
  unknownClient.bind(12, address);
  const asked = createSocket({ type, ipv6Only: type === "udp6" });
  asked.on("message", (payload, from) => unknownClient.send(payload, from.port, from.address));
  asked.bind(11, address);
  await Promise.all([once(unknownClient, "listening"), once(asked, "listening")]);
  const dns = createSocket({ type, ipv6Only: type === "udp6" });
  dns.on("message", (message, from) => {
    const { id = 0, questions = [] } = decode(message);
    const answers = questions
      .filter((question) => question.type === "A")
      .map(({ name }) => ({ type: "A" as const, name, ttl: 60, data: "198.51.100.2" }));
    dns.send(encode({ type: "response", id, questions, answers }), from.port, from.address);
  });
  dns.bind(53, address);
  await once(dns, "listening");
}
console.log("ready");
