/** What `explain` says, what the router shows of the connection, and which node it reaches: the same, for every case. */
import assert from "node:assert/strict";
import { always, openScripted } from "../integration/dns-kit.ts";
import { freePorts } from "./free-ports.ts";
import { openRecordingSocks } from "./recording-socks.ts";
import { NODES, routingCase } from "./routing-questions.ts";
import { socksConnect } from "./socks-client.ts";
import { startCore } from "./start-core.ts";

interface Shown {
  readonly connections: readonly {
    readonly chains: readonly string[];
    readonly metadata: { readonly sourcePort: string };
  }[];
}

/** Decides `cases` × `questions` times; answers with how many of them reached a node. */
export async function compareDecisions(cases: number, questions: number, firstSeed = 1): Promise<number> {
  await using nodes = new AsyncDisposableStack();
  const proxies: string[] = [];
  for (const name of NODES) {
    const { port } = nodes.use(await openRecordingSocks(name));
    proxies.push(`{ name: ${name}, type: socks5, server: 127.0.0.1, port: ${port}, udp: true }`);
  }
  await using server = await openScripted(always("203.0.1.5"));
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const head = `
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
dns: { enable: true, nameserver: [127.0.0.1:${server.port}] }
proxies: [${proxies.join(", ")}]
`;
  const api = async <T>(path: string): Promise<T> =>
    (await (await fetch(`http://127.0.0.1:${controller}${path}`)).json()) as T;
  let reached = 0;
  await using core = await startCore(`${head}${routingCase(firstSeed, 0).text}`);
  for (let seed = firstSeed; seed < firstSeed + cases; seed++) {
    const { text, questions: asked } = routingCase(seed, questions);
    await core.reload(`${head}${text}`);
    for (const { host, port } of asked) {
      const what = `seed ${seed}: ${host}:${port}\n${text}`;
      const { chain } = await api<{ chain: string[] }>(`/rules/explain?destination=${host}&port=${port}`);
      const { client, status } = await socksConnect(mixed, host, port);
      using _client = client;
      const wire = status === 0 ? await client.read(1).then(String, () => "REJECT") : "REJECT";
      assert.equal(wire, chain.at(-1), what);
      if (wire === "REJECT") continue;
      const source = String(client.socket.localPort);
      const { connections } = await api<Shown>("/connections");
      const row = connections.find(({ metadata }) => metadata.sourcePort === source);
      assert.deepEqual(row?.chains.toReversed(), chain, what);
      reached++;
    }
  }
  return reached;
}
