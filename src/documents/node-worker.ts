/**
 * The program of a thread that reads the nodes of a proxy provider. It has a file of its own because it loads every protocol
 * for its share links, which the thread that reads lists of rules does without.
 */
import { workerData } from "node:worker_threads";
import { answer } from "./answer.ts";
import { receivedBytes } from "./bytes.ts";
import type { NodesReply, NodesRequest } from "./messages.ts";
import { contentIn, packContent } from "./node-list.ts";
import { buffersOf } from "./packed.ts";

const { length }: NodesRequest = workerData;
await answer<NodesReply>(
  async () => ({ content: packContent(contentIn(await receivedBytes(length))) }),
  ({ content }) => buffersOf(content.nodes),
);
