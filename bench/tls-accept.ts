/** A server that answers a byte and closes: TLS with the certificate and key it is given, plain without. The first message to the parent is its port. */
import { type AddressInfo, createServer as createPlainServer, type Socket } from "node:net";
import { createServer } from "node:tls";

const [cert, key] = process.argv.slice(2);
const answer = (socket: Socket): void => {
  socket.on("error", () => {}).on("data", () => socket.end("."));
};
const protocols = { minVersion: "TLSv1.3", ALPNProtocols: ["h2", "http/1.1"] } as const;
const server =
  cert === undefined || key === undefined
    ? createPlainServer(answer)
    : createServer({ cert, key, ...protocols }, answer);
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
