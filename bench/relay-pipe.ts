/** The least that Node can do: each connection is piped to the target by the streams of the runtime. */
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";

const HOST = "127.0.0.1";
const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
  const remote = connect({ port: Number(process.argv[2]), host: HOST, allowHalfOpen: true, noDelay: true });
  client.on("error", () => remote.destroy());
  remote.on("error", () => client.destroy());
  client.pipe(remote).pipe(client);
});
server.listen({ port: 0, host: HOST, backlog: 4096 }, () => {
  process.send?.((server.address() as AddressInfo).port);
});
process.on("disconnect", () => process.exit(0));
