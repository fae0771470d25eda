/** The program with TLS listeners of every protocol: its threads shake hands, whatever happens to the listeners meanwhile. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import type { Protocol } from "#core/protocol.ts";
import { anytls } from "#protocols/anytls/index.ts";
import { http } from "#protocols/http/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { vless } from "#protocols/vless/index.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { echoed } from "../support/client.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient } from "../support/protocol-pair.ts";
import { startCore } from "../support/start-core.ts";
import { clientTls, password, serverTls, uuid } from "../support/tls-sides.ts";
import { clientHello } from "../support/hostile-tls-clients.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP handshakes in workers: needs Linux";

interface Row {
  readonly name: string;
  readonly protocol: Protocol;
  readonly listener: object;
  readonly client: object;
}

const ROWS: readonly Row[] = [
  { name: "vless", protocol: vless, listener: { users: [{ uuid }] }, client: { uuid } },
  { name: "trojan", protocol: trojan, listener: { users: [{ password }] }, client: { password } },
  { name: "anytls", protocol: anytls, listener: { users: { ada: password } }, client: { password } },
  { name: "vmess", protocol: vmess, listener: { users: [{ uuid }] }, client: { uuid, alterId: 0 } },
  { name: "mixed", protocol: http, listener: {}, client: {} },
];

test(
  "clients of every protocol are served, over reloads, changes of `relay` and the end",
  { skip },
  async () => {
    const ports = await freePorts(ROWS.length);
    const text = (relay: string, again: boolean): string =>
      JSON.stringify({
        relay,
        "log-level": "debug",
        rules: ["MATCH,DIRECT"],
        listeners: ROWS.map(({ name, listener }, at) => ({
          name: `${name}${again ? " again" : ""}`,
          type: name,
          listen: "127.0.0.1",
          port: ports[at],
          ...serverTls,
          ...listener,
        })),
      });
    await using origin = await openTcpOrigin(echo);
    await using core = await startCore(text("auto", false));
    let goesOn = true;
    let served = 0;
    const client = async ({ protocol, client: options }: Row, port: number): Promise<void> => {
      const node = { server: "127.0.0.1", port, ...clientTls, ...options };
      while (goesOn) {
        const outbound = await openClient(protocol, node);
        const context = { signal: AbortSignal.timeout(20_000), metadata: null };
        const stream: Duplex = await outbound.connect(origin.destination, context);
        stream.on("error", () => {});
        await echoed(stream, 30_000);
        stream.destroy();
        await outbound[Symbol.asyncDispose]();
        served++;
      }
    };
    const clients = ROWS.flatMap((row, at) => [
      client(row, ports[at] as number),
      client(row, ports[at] as number),
    ]);
    const texts = [text("auto", true), text("portable", true), text("auto", false), text("portable", false)];
    const hello = await clientHello({ ALPNProtocols: ["h2"] });
    const middle = hello.length >> 1;
    const halves = await Promise.all(ports.map((port) => halfway(port, hello.subarray(0, middle))));
    for (let round = 0; round < 8; round++) {
      const before = served;
      await core.reload(texts[round % texts.length] as string);
      const resume = until("others are served", () => served >= before + 2 * ROWS.length);
      await Promise.race([resume, Promise.all(clients)]); // a fault of one ends the wait at once
    }
    goesOn = false;
    await Promise.all(clients);
    for (const half of halves) {
      half.write(hello.subarray(middle));
      const [answer] = (await once(half, "data")) as [Buffer];
      assert.equal(answer[0], 22, "a ServerHello, of a listener that was replaced again and again"); // RFC 8446 §5.1
      half.destroy();
    }
    assert.equal(await core.stop(), 0);
  },
);

/** Connected, with the beginning of a hello said. */
async function halfway(port: number, begin: Buffer): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  await once(socket, "connect");
  socket.write(begin);
  return socket;
}
