/** A relay that dials by one of our nodes, whose listener relays to an origin: both sides of a protocol that workers may take. */
import assert from "node:assert/strict";
import type { Duplex } from "node:stream";
import type { Protocol } from "#core/protocol.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import { toDestination } from "#net/address/ip.ts";
import type { OpenWay } from "./connections.ts";
import { metadataOf } from "./metadata.ts";
import { openPluginServer } from "./plugin-server.ts";
import { openClient, openServer } from "./protocol-pair.ts";
import { openRelayed } from "./relayed.ts";

export type Options = Readonly<Record<string, unknown>>;

export interface Form {
  readonly protocol: Protocol;
  readonly server: Options;
  readonly client: Options;
  /** What stands in front of the listener, as a program of its own would; absent: nothing. */
  readonly plugin?: "WebSocket" | "WebSocket and TLS";
}

/** By our node, over what leads to its server. */
export const dialling =
  ({ protocol, client }: Form, serverPort: number, originPort: number) =>
  async (wire: Duplex): Promise<Duplex> => {
    const destination = toDestination("127.0.0.1", originPort);
    const dialer = { connect: async () => wire, associate: () => assert.fail("a stream was asked for") };
    const address = { server: "127.0.0.1", port: serverPort };
    const node = await openClient(protocol, { ...address, ...client }, { dialer });
    const metadata = metadataOf(destination);
    return node.connect(destination, { signal: new AbortController().signal, metadata });
  };

/** `backend` relays on both sides. */
export const openChain =
  (form: Form, backend: RelayBackend | null): OpenWay =>
  async (originPort, options = {}) => {
    await using undo = new AsyncDisposableStack();
    let { port } = undo.use(await openServer(form.protocol, form.server, undefined, backend));
    if (form.plugin !== undefined)
      ({ port } = undo.use(await openPluginServer(port, form.plugin === "WebSocket and TLS")));
    const back = dialling(form, port, originPort);
    const near = undo.use(await openRelayed(port, { backend, ...options, back }));
    const opened = undo.move();
    return { relays: [near], dial: () => near.dial(), [Symbol.asyncDispose]: () => opened.disposeAsync() };
  };
