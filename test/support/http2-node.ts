/** A node over gRPC or h2, from options as in a file, whose streams workers open by themselves. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import type { Protocol } from "#core/protocol.ts";
import type { DialTemplate } from "#core/dial-plan.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import { PLAIN_WAY } from "./decision-data.ts";
import { DecidingEngine } from "./deciding-engine.ts";
import { directDialer } from "./direct-accept.ts";
import { openTcpOrigin, type Origin } from "./origin.ts";
import { openClient } from "./protocol-pair.ts";
import type { RawClient } from "./raw-client.ts";
import { socksConnect } from "./socks-client.ts";
import { until } from "./until.ts";

export interface Http2Node extends AsyncDisposable {
  readonly engine: DecidingEngine;
  /** A client that is told that it is connected. */
  dial(port: number): Promise<RawClient>;
  /** It is taken away. */
  remove(): Promise<void>;
}

/** Everything leads through it, and the one worker knows it. */
export async function openHttp2Node(protocol: Protocol, options: object): Promise<Http2Node> {
  await using undo = new AsyncDisposableStack();
  const dialer = { ...directDialer, template: (): DialTemplate => PLAIN_WAY };
  const outbound = undo.use(await openClient(protocol, { server: "127.0.0.1", ...options }, { dialer }));
  const engine = undo.use(await DecidingEngine.open(1));
  await until("the first version", () => engine.version > 0);
  engine.node = outbound.template?.()?.node ?? null;
  assert.ok(engine.node?.recipe.under?.mux !== undefined, "its streams share connections");
  engine.change([{ is: "always" }]);
  await until("the worker has it", () => engine.dropped.length > 0);
  const opened = undo.move();
  return {
    engine,
    async dial(port) {
      const { client, status } = await socksConnect(engine.port, "127.0.0.1", port);
      assert.equal(status, 0);
      client.socket.on("error", () => {});
      return client;
    },
    remove: async () => outbound[Symbol.asyncDispose](),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export interface Gate extends Origin {
  /** What has come, of which some may be closed. */
  readonly connections: readonly Socket[];
}

/** Passes connections on to the port. */
export async function openGate(port: number): Promise<Gate> {
  const connections: Socket[] = [];
  const origin = await openTcpOrigin((near) => {
    connections.push(near);
    const far = connect({ port, host: LOOPBACK_V4, allowHalfOpen: true, noDelay: true });
    far.on("error", () => near.destroy()).on("close", () => near.destroy());
    near.on("close", () => far.destroy());
    near.pipe(far).pipe(near);
  });
  return { ...origin, connections };
}
