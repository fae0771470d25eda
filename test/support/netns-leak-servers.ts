/** Runs in a namespace, `node netns-leak-servers.ts ADDRESS…`: STUN, a page that shows who asks, DNS at each address. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { createServer, isIPv6 } from "node:net";
import { decode, encode } from "dns-packet";

const bytesOf = (address: string): Buffer => {
  if (!isIPv6(address)) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail = ""] = address.split("::");
  const groups = (part: string) => part.split(":").filter((group) => group !== "");
  const zeros = 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array.from({ length: zeros }, () => "0"), ...groups(tail)];
  return Buffer.from(all.map((group) => group.padStart(4, "0")).join(""), "hex");
};

/** RFC 8489 §14.2 */
function bindingAnswer(request: Buffer, address: string, port: number): Buffer {
  const mix = request.subarray(4, 20);
  const plain = bytesOf(address);
  const mixed = plain.map((byte, at) => byte ^ (mix[at] ?? 0));
  const value = Buffer.concat([Buffer.from([0, plain.length === 4 ? 1 : 2, 0, 0]), mixed]);
  value.writeUInt16BE(port ^ 0x2112, 2);
  const head = Buffer.from([1, 1, 0, value.length + 4]);
  return Buffer.concat([head, mix, Buffer.from([0, 0x20, 0, value.length]), value]);
}

const dnsAnswer = (message: Buffer): Buffer => {
  const { id = 0, questions = [] } = decode(message);
  return encode({ type: "response", flags: 3, id, questions, answers: [] });
};

for (const address of process.argv.slice(2)) {
  const type = isIPv6(address) ? "udp6" : "udp4";
  const stun = createSocket(type);
  stun.on("message", (message, from) =>
    stun.send(bindingAnswer(message, from.address, from.port), from.port, from.address),
  );
  stun.bind(3478, address);
  await once(stun, "listening");
  const dns = createSocket(type);
  dns.on("message", (message, from) => dns.send(dnsAnswer(message), from.port, from.address));
  dns.bind(53, address);
  await once(dns, "listening");
  const dnsByTcp = createServer((socket) => {
    socket
      .on("error", () => {})
      .on("data", (chunk: Buffer) => {
        const answer = dnsAnswer(chunk.subarray(2));
        socket.write(Buffer.concat([Buffer.from([answer.length >> 8, answer.length & 0xff]), answer]));
      });
  }).listen(53, address);
  await once(dnsByTcp, "listening");
  const page = createHttp(({ socket }, response) =>
    response.end(`you are ${socket.remoteAddress?.replace("::ffff:", "")}\n`),
  ).listen(80, address);
  await once(page, "listening");
}
console.log("ready");
