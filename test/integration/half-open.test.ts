/** Clients that begin a handshake and never end it: they are bounded, cost other clients nothing, and their memory comes back. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { after, test } from "node:test";
import { vless } from "#protocols/vless/index.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { echoed } from "../support/client.ts";
import { freePorts } from "../support/free-ports.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { openClient } from "../support/protocol-pair.ts";
import { startCore } from "../support/start-core.ts";
import { clientTls, password, serverTls, uuid } from "../support/tls-sides.ts";
import { clientHello } from "../support/hostile-tls-clients.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP half-open handshakes: need Linux";

const loopback = "127.0.0.1";
const ports = (await freePorts(3)) as [number, number, number];
const [secure, plain, hidden] = ports;
const listeners = [
  { name: "secure", type: "vless", port: secure, users: [{ uuid }], ...serverTls },
  { name: "plain", type: "vless", port: plain, users: [{ uuid }], "allow-insecure": true },
  { name: "hidden", type: "trojan", port: hidden, users: [{ password }], ...serverTls },
].map((one) => ({ listen: loopback, ...one }));

/** Of an honest client. */
const TRIES = 4;

/** Keeps so many sockets open in one state; those that are closed for it are counted. */
class Crowd {
  readonly sockets = new Set<Socket>();
  closed = 0;

  /** Each from an address of its own, or all from one. */
  async open(count: number, port: number, says: Buffer, apart: boolean): Promise<void> {
    for (let at = 0; at < count; at += 100)
      await Promise.all(Array.from({ length: 100 }, (_, next) => this.#one(at + next, port, says, apart)));
  }

  async #one(at: number, port: number, says: Buffer, apart: boolean): Promise<void> {
    const localAddress = apart ? `127.1.${1 + Math.floor(at / 250)}.${1 + (at % 250)}` : loopback;
    const socket = connect({ port, host: loopback, localAddress });
    this.sockets.add(socket);
    socket
      .on("error", () => {})
      .on("close", () => {
        this.closed++;
        this.sockets.delete(socket);
      });
    socket.write(says);
    socket.resume();
    await Promise.race([once(socket, "connect"), once(socket, "close")]).catch(() => {});
  }

  end(): void {
    for (const socket of this.sockets) socket.destroy();
  }
}

const options = {
  vless: { protocol: vless, own: { uuid } },
  trojan: { protocol: trojan, own: { password } },
};

/** An honest client; throws where it is not served. */
async function speak(
  kind: keyof typeof options,
  port: number,
  tls: object,
  origin: Awaited<ReturnType<typeof openTcpOrigin>>,
) {
  const { protocol, own } = options[kind];
  const outbound = await openClient(protocol, { server: loopback, port, ...tls, ...own });
  const context = { signal: AbortSignal.timeout(20_000), metadata: null };
  const stream = await outbound.connect(origin.destination, context);
  stream.on("error", () => {});
  await echoed(stream, 5_000);
  stream.destroy();
  await outbound[Symbol.asyncDispose]();
}

/** Gives way at times like everybody who handshakes in such a crowd, and tries again as clients do; throws where that does not help. */
async function isServed(...client: Parameters<typeof speak>): Promise<void> {
  for (let tries = 1; ; tries++)
    try {
      return await speak(...client);
    } catch (error) {
      if (tries === TRIES) throw error;
    }
}

for (const relay of ["auto", "portable"])
  for (const apart of [false, true])
    test(
      `relay ${relay}, ${apart ? "each from elsewhere" : "all from one address"}: thousands that never end their handshakes keep no other client out`,
      { skip },
      async (context) => {
        const [handshaking, silent] = [new Crowd(), new Crowd()];
        const endAll = (): void => [handshaking, silent].forEach((crowd) => crowd.end());
        after(endAll);
        await using origin = await openTcpOrigin(echo);
        await using core = await startCore(JSON.stringify({ relay, rules: ["MATCH,DIRECT"], listeners }));
        await speak("vless", secure, clientTls, origin);
        const residentMiB = (): number =>
          Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${core.pid}/status`, "latin1"))?.[1]) / 1024;
        const before = residentMiB();
        const hello = await clientHello();
        let goesOn = true;
        const honest = (async () => {
          let served = 0;
          for (; goesOn; served++) {
            await isServed("vless", secure, clientTls, origin);
            await isServed("vless", plain, {}, origin);
            await isServed("trojan", hidden, clientTls, origin);
          }
          return served;
        })();
        honest.catch(() => {}); // handled below
        await handshaking.open(2_500, secure, hello, apart);
        await silent.open(2_500, plain, Buffer.alloc(10), apart);
        goesOn = false;
        assert.ok((await honest) > 0);
        await until("the oldest of those with TLS have given way", () => handshaking.closed > 0);
        if (!apart) await until("so have those that have more than their share", () => silent.closed > 0);
        const during = residentMiB();
        const closed = `${handshaking.closed} with TLS and ${silent.closed} without were closed`;
        context.diagnostic(`${before.toFixed(0)} MiB before, ${during.toFixed(0)} during; ${closed}`);
        endAll();
        await speak("vless", secure, clientTls, origin);
        assert.equal(await core.stop(), 0);
      },
    );
