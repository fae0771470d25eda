/** Runs in the router's namespace: services of that machine on every address, and a DNS server on loopback. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:http";
import { decode, encode } from "dns-packet";

/** By the first label of the name. */
const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
  loop: ["127.0.0.1"],
  second: ["127.0.0.1"],
  zero: ["0.0.0.0"],
  local: ["169.254.1.1"],
  own: ["203.0.113.1"],
  both: ["127.0.0.1", "198.51.100.2"],
  far: ["198.51.100.2"],
  private: ["10.9.9.2"],
};

const web = createServer((_, response) => response.end("reached")).listen(8080, "::");
await once(web, "listening");
const echo = createSocket({ type: "udp6", ipv6Only: false, reuseAddr: true });
echo.on("message", (_, from) => echo.send("reached", from.port, from.address));
echo.bind(8080, "::");
await once(echo, "listening");
const dns = createSocket("udp4");
dns.on("message", (message, from) => {
  const { id = 0, questions = [] } = decode(message);
  const answers = questions
    .filter(({ type }) => type === "A")
    .flatMap(({ name }) =>
      (ADDRESSES[name.split(".")[0] ?? ""] ?? []).map((data) => ({
        type: "A" as const,
        name,
        ttl: 60,
        data,
      })),
    );
  dns.send(encode({ type: "response", id, questions, answers }), from.port, from.address);
});
dns.bind(5353, "127.0.0.1");
await once(dns, "listening");
console.log("ready");
