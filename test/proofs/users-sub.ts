/** What a probe of `/sub` can learn: the answers to all kinds of subscriptions that there are not, and how long they take. */
import { connect } from "node:net";
import { once } from "node:events";
import { randomBytes } from "node:crypto";
import { CONTROLLER_SECRET, ManagedCore, stateFolder } from "../support/managed-core.ts";
import { makeState, type MadeUser } from "../support/many-users.ts";
import { quantile } from "../support/slow-clients.ts";

export interface Silence {
  readonly kind: string;
  /** The whole answer; the time of day left out. */
  readonly answer: string;
  readonly medianMs: number;
}

/** Anytls without TLS: its users have no links. */
const BARE = `  - name: edge
    type: vless
    listen: 127.0.0.1
    port: 0
    allow-insecure: true
    users: []
  - name: bare
    type: anytls
    listen: 127.0.0.1
    port: 0
    allow-insecure: true
    users: {}
  - name: left
    type: vless
    listen: 127.0.0.1
    port: 0
    allow-insecure: true
    users: []
`;

/** Each kind is asked for `times` times, in turn. */
export async function proveSilence(times: number): Promise<readonly Silence[]> {
  using state = stateFolder();
  const [bare] = makeState(state.store, { bare: "anytls" }, 1) as [MadeUser];
  const options = { listeners: BARE, managed: ["edge", "bare", "left"], store: state.store };
  await using core = await ManagedCore.start({ ...options, folder: state.path, isWatched: false });
  const tokens = new Map([...(await unknownTokens(core)), ["without a link", bare.token]]);
  const kinds = [...tokens].map(([kind, token]) => ({ kind, token, took: [] as number[], answer: "" }));
  using client = await Client.open(Number(new URL(core.url).port));
  for (let round = 0; round < times; round++)
    for (const one of kinds) {
      const startMs = performance.now();
      one.answer = await client.ask(one.token);
      one.took.push(performance.now() - startMs);
    }
  return kinds.map(({ kind, answer, took }) => ({
    kind,
    answer: answer.replace(/^date: .*\r\n/im, ""),
    medianMs: quantile(
      took.toSorted((a, b) => a - b),
      0.5,
    ),
  }));
}

export function shownSilence(found: readonly Silence[]): string {
  const medians = found.map(({ medianMs }) => medianMs);
  const apart = (Math.max(...medians) / Math.min(...medians) - 1) * 100;
  const different = new Set(found.map(({ answer }) => answer)).size - 1;
  const each = found.map(({ kind, medianMs }) => `${kind} ${medianMs.toFixed(3)}`).join(", ");
  return `404s: ${different} differ in a byte; medians ${each} ms, ${apart.toFixed(1)} % apart`;
}

async function unknownTokens(core: ManagedCore): Promise<ReadonlyMap<string, string>> {
  const tokenOf = async (name: string, tag = "edge") => {
    const user = await core.create(tag, name);
    return { id: user.id, token: user.subscription_url?.split("/").at(-1) ?? "" };
  };
  const disabled = await tokenOf("disabled");
  await core.change("edge", "PUT", `/${disabled.id}`, { enabled: false });
  const deleted = await tokenOf("deleted");
  await core.change("edge", "DELETE", `/${deleted.id}`);
  const rotated = await tokenOf("rotated");
  await core.change("edge", "POST", `/${rotated.id}/rotate-subscription`);
  const left = await tokenOf("left", "left");
  core.core.write(core.configText.replace(/managed-listeners: .*/, "managed-listeners: [edge, bare]"));
  const said = await core.ask("PUT", "/configs", { body: { path: "" }, secret: CONTROLLER_SECRET });
  if (said.status !== 204) throw new Error(said.text);
  return new Map([
    ["unknown", randomBytes(32).toString("base64url")],
    ["no token", "x"],
    ["disabled", disabled.token],
    ["deleted", deleted.token],
    ["rotated", rotated.token],
    ["not managed", left.token],
    ["a format that there is not", `${(await tokenOf("format")).token}?format=none`],
  ]);
}

class Client implements Disposable {
  readonly #socket;
  #received = "";

  private constructor(port: number) {
    this.#socket = connect({ host: "127.0.0.1", port, noDelay: true });
    this.#socket.setEncoding("latin1").on("data", (text: string) => (this.#received += text));
  }

  static async open(port: number): Promise<Client> {
    const client = new Client(port);
    await once(client.#socket, "connect");
    return client;
  }

  async ask(token: string): Promise<string> {
    this.#received = "";
    this.#socket.write(`GET /sub/svc/${token} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    for (;;) {
      await once(this.#socket, "data");
      const head = this.#received.indexOf("\r\n\r\n");
      const length = Number(/^content-length: (\d+)/im.exec(this.#received)?.[1]);
      if (head >= 0 && this.#received.length >= head + 4 + length) return this.#received;
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
